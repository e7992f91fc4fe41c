/** TLS verification cannot be disabled by the environment: a server with a certificate of another name or authority gets no byte. */
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:https';
import { describe, expect, it, onTestFinished } from 'vitest';
import { call } from '../support/calls.ts';
import { makeCertificates } from '../support/certificates.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { MAIN } from '../support/main-file.ts';
import { sendRaw } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';

const BLIND = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
const WARNING = 'NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored';

/** A server with a wrong certificate; records what it receives. */
async function startImpostor(names: string) {
  const certificates = makeCertificates({ names });
  const { key, cert, caFile } = certificates;
  let connections = 0;
  const received: string[] = [];
  const server = createServer({ key, cert });
  server.on('secureConnection', (socket) => {
    socket.on('error', () => undefined).on('data', (chunk: Buffer) => received.push(chunk.toString('latin1')));
  });
  server.on('connection', () => connections++);
  server.on('tlsClientError', () => undefined);
  const { port } = new URL(await listenOnLoopback(server));
  onTestFinished(async () => {
    await closeServer(server);
    certificates[Symbol.dispose]();
  });
  return { port, caFile, received, connections: () => connections };
}

const IMPOSTORS = [
  ['another name', 'DNS:other.example', true],
  ['an unknown authority', 'IP:127.0.0.1', false],
] as const;

describe.each(IMPOSTORS)('NODE_TLS_REJECT_UNAUTHORIZED=0 and a certificate of %s', (_, names, isTrusted) => {
  async function start(env: Readonly<Record<string, string>>) {
    const tokens = await startTokenServer();
    const upstream = await startRecordingUpstream((_request, response) => void response.end('{}'));
    const common = baseSettings(upstream.url, tokens.url, newCredential());
    const sidecar = await startSidecar({ name: 'blind-trust', env: { ...common, ...BLIND, ...env } });
    onTestFinished(async () => {
      await sidecar[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
      await tokens[Symbol.asyncDispose]();
    });
    await sidecar.waitForLine(new RegExp(WARNING));
    await sidecar.waitForLine(/SIDECAR_CA_FILE.*SIDECAR_AUTH_CA_FILE/);
    return sidecar;
  }

  it('the token endpoint is refused, and calls fail', async () => {
    const impostor = await startImpostor(names);
    const trust = isTrusted ? { SIDECAR_AUTH_CA_FILE: impostor.caFile } : {};
    const sidecar = await start({ SIDECAR_AUTH_URL: `https://127.0.0.1:${impostor.port}`, ...trust });
    await sidecar.waitForLine(/"msg":"token request failed/);
    expect((await call(sidecar.proxyUrl)).status).toBe(503);
    expect(impostor.connections()).toBeGreaterThan(0);
    expect(impostor.received).toEqual([]);
  });

  it('the upstream is refused', async () => {
    const impostor = await startImpostor(names);
    const trust = isTrusted ? { SIDECAR_CA_FILE: impostor.caFile } : {};
    const sidecar = await start({ SIDECAR_BASE_URL: `https://127.0.0.1:${impostor.port}`, ...trust });
    await waitUntilReady(sidecar);
    expect((await call(sidecar.proxyUrl)).status).toBe(502);
    expect(impostor.connections()).toBeGreaterThan(0);
    expect(impostor.received).toEqual([]);
  });

  it.each([
    ['Redis', (port: string) => ({ SIDECAR_REDIS_URL: `rediss://127.0.0.1:${port}` }), 'SIDECAR_FLEET_CA_FILE'],
    [
      'the collector of traces',
      (port: string) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: `https://127.0.0.1:${port}`, OTEL_BSP_SCHEDULE_DELAY: '50' }),
      'OTEL_EXPORTER_OTLP_CERTIFICATE',
    ],
  ])('%s is refused', async (_name, envFor, caVariable) => {
    const impostor = await startImpostor(names);
    const sidecar = await start({ ...envFor(impostor.port), ...(isTrusted ? { [caVariable]: impostor.caFile } : {}) });
    await waitUntilReady(sidecar);
    await waitUntil(async () => {
      await call(sidecar.proxyUrl);
      return impostor.connections() > 1;
    }, 'it is tried again');
    expect(impostor.received).toEqual([]);
  });

  it('the egress proxy is refused', async () => {
    const impostor = await startImpostor(names);
    const trust = isTrusted ? { SIDECAR_EGRESS_CA_FILE: impostor.caFile } : {};
    const egress = { SIDECAR_EGRESS_PROXY: `https://127.0.0.1:${impostor.port}`, ...trust };
    const sidecar = await start({ ...egress, SIDECAR_AUTH_URL: 'https://auth.invalid' });
    await sidecar.waitForLine(/"msg":"token request failed/);
    expect(impostor.connections()).toBeGreaterThan(0);
    expect(impostor.received).toEqual([]);
  });
});

it('a command without a log writes to standard error', () => {
  const env = { PATH: process.env.PATH, ...BLIND };
  const { stderr } = spawnSync(process.execPath, [MAIN, 'check'], { env, encoding: 'utf8' });
  expect(stderr).toContain(WARNING);
  const { stderr: ofHealth } = spawnSync(process.execPath, [MAIN, 'health'], { env, encoding: 'utf8' });
  expect(ofHealth).not.toContain(WARNING);
});

it('NODE_OPTIONS=--insecure-http-parser lets no request through that is refused without it', async () => {
  const tokens = await startTokenServer();
  const upstream = await startRecordingUpstream((_request, response) => void response.end('{}'));
  onTestFinished(() => tokens[Symbol.asyncDispose]());
  onTestFinished(() => upstream[Symbol.asyncDispose]());
  const env = { ...baseSettings(upstream.url, tokens.url, newCredential()), NODE_OPTIONS: '--insecure-http-parser' };
  await using sidecar = await startSidecar({ name: 'insecure-parser', env });
  await waitUntilReady(sidecar);
  const both =
    'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';
  const { bytes } = await sendRaw(sidecar.proxyUrl, both);
  expect(bytes.toString('latin1')).toMatch(/^HTTP\/1\.1 400 /);
  const { bytes: ofAdmin } = await sendRaw(
    sidecar.adminUrl,
    'GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: a\x01b\r\n\r\n',
  );
  expect(ofAdmin.toString('latin1')).toMatch(/^HTTP\/1\.1 400 /);
  expect(upstream.requests).toEqual([]);
});
