/** The one-file binary, as a person without Node.js has it: in an empty folder, with a PATH on which no program is. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { ASSET_NAMES, readAsset } from '../../src/platform/asset.ts';
import { call } from '../support/calls.ts';
import { makeCertificates } from '../support/certificates.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { startRedis } from '../support/redis.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { SpawnOptions } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const BUILD_MS = 120_000;
const FREE_PORTS = { SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' };
const run = promisify(execFile);

let folder = '';
let binary = '';
let report = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'one-file-'));
  mkdirSync(join(folder, 'empty'));
  binary = join(folder, 'out', 'bearer-sidecar');
  report = (await run(process.execPath, [join(ROOT, 'tools', 'binary', 'main.ts'), binary])).stdout;
  console.log(report);
}, BUILD_MS);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Started from an empty folder, with an empty folder as its PATH. */
function alone(options: SpawnOptions): SpawnOptions {
  const empty = join(folder, 'empty');
  return { ...options, program: [binary], cwd: empty, env: { PATH: empty, ...options.env } };
}

describe('the one-file binary', () => {
  it('runs the sandbox without an installed Node.js', async () => {
    const begin = performance.now();
    await using sidecar = spawnSidecar(alone({ name: 'binary-sandbox', args: ['sandbox'], env: FREE_PORTS }));
    const line = await sidecar.waitForLine(/^try curl /);
    const ready = Math.round(performance.now() - begin);
    console.log(`one-file binary: ${(statSync(binary).size / 1e6).toFixed(1)} MB, sandbox up in ${ready} ms`);

    const { stdout } = await run('sh', ['-c', line.replace(/^try /, '')]);
    expect(stdout).toMatch(/^HTTP\/1\.1 201 /);
    expect(stdout).toContain('"simulated":true');

    const admin = (await sidecar.waitForLine(/^admin /)).replace('admin ', '');
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(JSON.parse((await call(`${admin}/status`)).text)).toMatchObject({ version });
    const { text: page } = await call(`${admin}/`);
    const files = [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path);
    expect(files).not.toEqual([]);
    for (const path of files) expect((await call(`${admin}${path}`)).status, path).toBe(200);
    expect(await sidecar.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(sidecar.stderr()).not.toContain('ExperimentalWarning');
  });

  it('contains its assets', () => {
    const image = readFileSync(binary);
    for (const name of ASSET_NAMES) expect(image.includes(readAsset(name)), name).toBe(true);
  });

  it.each([
    [['--version'], 0, /^\d+\.\d+\.\d+\n$/],
    [['--help'], 0, /usage/i],
    [['--inspect'], 2, /^$/],
  ])('%j exits with %i', async (args, code, stdout) => {
    await using sidecar = spawnSidecar(alone({ name: 'binary-usage', args }));
    expect(await sidecar.exit).toEqual({ code, signal: null });
    expect(sidecar.stdout()).toMatch(stdout);
  });

  it('names wrong settings, and exits with 2', async () => {
    await using sidecar = spawnSidecar(alone({ name: 'binary-settings', env: { SIDECAR_RATE: 'fast' } }));
    expect(await sidecar.exit).toEqual({ code: 2, signal: null });
    expect(sidecar.stderr()).toContain('(SIDECAR_RATE)');
    expect(sidecar.stderr()).not.toMatch(/^\s+at /m);
  });

  it('restarts without NODE_DEBUG, with the same arguments', async () => {
    const env = { NODE_DEBUG: 'net', DEBUG: '*' };
    await using sidecar = spawnSidecar(alone({ name: 'binary-debug', args: ['health', 'nonsense'], env }));
    expect(await sidecar.exit).toEqual({ code: 2, signal: null });
    const lines = sidecar.stderr().trim().split('\n');
    expect(lines).toEqual([expect.stringContaining('NODE_DEBUG is ignored'), expect.stringContaining('"nonsense"')]);
  });

  it('contains what is loaded late: WebSockets, client assertions, Redis, tracing', async () => {
    await using cleanup = new AsyncDisposableStack();
    const certificates = makeCertificates();
    cleanup.defer(() => certificates[Symbol.dispose]());
    const server = createServer((_request, response) => response.end('plain'));
    const echo = new WebSocketServer({ server });
    echo.on('connection', (socket) => socket.on('message', (data: Buffer) => socket.send(data)));
    const upstreamUrl = await listenOnLoopback(server);
    cleanup.defer(() => closeServer(server));
    cleanup.defer(() => echo.clients.forEach((socket) => socket.terminate()));
    const redis = await startRedis();
    const collector = cleanup.use(await startRecordingUpstream());
    const tokens = cleanup.use(await startTokenServer());
    const env = {
      ...baseSettings(upstreamUrl, tokens.url, newCredential()),
      SIDECAR_CLIENT_SECRET: '',
      SIDECAR_AUTH_METHOD: 'private_key_jwt',
      SIDECAR_AUTH_PRIVATE_KEY_FILE: certificates.serverFiles.keyFile,
      SIDECAR_WEBSOCKET: 'true',
      SIDECAR_REDIS_URL: redis.url,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    };
    const sidecar = cleanup.use(await startSidecar(alone({ name: 'binary-late', env })));
    await waitUntilReady(sidecar);

    expect(tokens.requests[0]?.body.toString()).toContain('client_assertion=ey');
    expect(await redis.dump()).not.toBe('');
    const socket = new WebSocket(sidecar.proxyUrl.replace('http', 'ws'));
    await once(socket, 'open');
    socket.send('one');
    expect(String(((await once(socket, 'message')) as [Buffer])[0])).toBe('one');
    socket.close();
    await once(socket, 'close');
    expect((await call(sidecar.proxyUrl)).text).toBe('plain');
    expect(await sidecar.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(collector.requests.map(({ path }) => path)).toContain('/v1/traces');
  });
});

describe('the build', () => {
  it('changes no code of the Node.js that it copies', async () => {
    for (const section of ['.plt', '.text']) {
      const [original, copied] = [join(folder, 'original'), join(folder, 'copied')];
      await run('objcopy', ['--dump-section', `${section}=${original}`, process.execPath, '/dev/null']);
      await run('objcopy', ['--dump-section', `${section}=${copied}`, binary, '/dev/null']);
      expect(readFileSync(copied).equals(readFileSync(original)), section).toBe(true);
    }
  });

  it('documents the libraries that the binary needs, and prints them', async () => {
    const { stdout } = await run('readelf', ['--wide', '--dynamic', binary]);
    const needed = [...stdout.matchAll(/Shared library: \[(.+)\]/g)].map(([, name = '']) => name);
    expect(needed).toContain('libc.so.6');
    expect(printedList('needs these libraries')).toEqual(needed);
    expect(documentedRequirements().filter((name) => name.includes('.so.'))).toEqual(needed.toSorted());
  });

  it('documents the versions of these libraries, which are those that the loader checks', async () => {
    const { stdout } = await run('readelf', ['--wide', '--version-info', binary]);
    const required = [...stdout.matchAll(/Name: (\S+) +Flags/g)].map(([, name = '']) => name);
    const printed = printedList('in these versions or newer');
    expect(required).toEqual(expect.arrayContaining([...printed]));
    expect(printed).toContainEqual(expect.stringMatching(/^GLIBC_2\.\d+$/));
    expect(documentedRequirements().filter((name) => !name.includes('.so.'))).toEqual(printed.toSorted());
  });

  it('writes the binary and the licences of everything inside', () => {
    expect(readdirSync(dirname(binary)).sort()).toEqual(['bearer-sidecar', 'bearer-sidecar.licences.txt']);
    const text = readFileSync(`${binary}.licences.txt`, 'utf8');
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
    const names = ['bearer-sidecar', 'Node.js', ...Object.keys(dependencies)];
    expect(names.filter((name) => !text.includes(name))).toEqual([]);
  });
});

function printedList(label: string): readonly string[] {
  return new RegExp(`^${label}: (.*)$`, 'm').exec(report)?.[1]?.split(', ') ?? [];
}

/** Names in the first two columns of the table in docs/install.md. */
function documentedRequirements(): string[] {
  const page = readFileSync(join(ROOT, 'docs', 'install.md'), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  return rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)).sort();
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
}
