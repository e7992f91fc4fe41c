/** What `check` reports of servers with TLS, with servers of two libraries. */
import { constants } from 'node:crypto';
import { createServer } from 'node:https';
import type { ServerOptions } from 'node:https';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkConnection } from '../../../src/commands/check/connection.ts';
import { selectNoProxy } from '../../../src/platform/egress/proxy-selector.ts';
import { Secrets } from '../../../src/platform/secrets.ts';
import { StepRunner } from '../../../src/commands/check/step-runner.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import type { ClientCertificateFiles } from '../../../src/platform/tls.ts';
import { makeCertificates } from '../../support/certificates.ts';
import type { CertificateOptions, Certificates } from '../../support/certificates.ts';
import { closeServer, listenOnLoopback } from '../../support/loopback.ts';
import { startVerifyingNginx } from '../../support/nginx.ts';
import { startOpensslServer } from '../../support/openssl-server.ts';

let certificates: Certificates;
beforeAll(() => {
  certificates = makeCertificates();
});
afterAll(() => {
  certificates[Symbol.dispose]();
});

async function tlsStepOf(url: string | URL, { caFile = certificates.caFile, files = undefined as Files } = {}) {
  const { signal } = new AbortController();
  const surroundings = { secrets: new Secrets(systemClock), egress: selectNoProxy, sharedCaFile: undefined };
  const context = { ...surroundings, clock: systemClock, signal, stop: signal };
  const runner = new StepRunner('upstream', context);
  const names = { address: 'BASE_URL', ca: 'CA_FILE', certificate: 'CERTIFICATE_FILE' };
  const server = { names, caFile, clientCertificate: files, tlsGroups: undefined };
  const isReached = await checkConnection(runner, { ...server, url: new URL(url), timeoutMs: 5000 }, context);
  const step = runner.steps.at(-1);
  expect(step?.step).toBe('tls');
  expect(isReached).toBe(step?.outcome !== 'fail');
  return step;
}

type Files = ClientCertificateFiles | undefined;

async function withServer<T>(options: ServerOptions, run: (url: string) => Promise<T>): Promise<T> {
  const { key, cert } = certificates;
  const server = createServer({ key, cert, ...options });
  try {
    return await run((await listenOnLoopback(server)).replace('http:', 'https:'));
  } finally {
    await closeServer(server);
  }
}

test('a server that requires a certificate says so after the handshake, unless it gets one', async () => {
  await using openssl = await startOpensslServer(certificates);
  expect(await tlsStepOf(openssl.url)).toMatchObject({
    outcome: 'fail',
    detail: expect.stringMatching(/requires a client certificate \(.*_ALERT_CERTIFICATE_REQUIRED\)$/) as string,
    advice: expect.stringContaining('set CERTIFICATE_FILE') as string,
  });
  expect(await tlsStepOf(openssl.url, { files: certificates.issue('legacy-app') })).toMatchObject({
    outcome: expect.not.stringContaining('fail') as string,
    detail: expect.stringMatching(/^TLSv1\.3 .*, our certificate offered$/) as string,
  });
});

test('a certificate that nginx wants by HTTP only is no fault of the handshake', async () => {
  await using nginx = await startVerifyingNginx(certificates);
  expect(await tlsStepOf(nginx.url)).toMatchObject({ outcome: expect.not.stringContaining('fail') as string });
});

test('a server that closes the connection after the handshake is a fault', async () => {
  const { key, cert } = certificates;
  // Without a session ticket, which would accept the client.
  const server = createServer({ key, cert, secureOptions: constants.SSL_OP_NO_TICKET });
  server.on('secureConnection', (socket) => socket.destroy());
  const step = await tlsStepOf((await listenOnLoopback(server)).replace('http:', 'https:'));
  await closeServer(server);
  expect(step).toMatchObject({ outcome: 'fail', detail: expect.stringContaining('cut the connection') as string });
});

test.each<[string, CertificateOptions, RegExp, RegExp]>([
  ['another name', { names: 'DNS:other.example' }, /another host name: it is for other\.example \(/, /BASE_URL/],
  ['no time left', { days: -1 }, /has expired \(CERT_HAS_EXPIRED\)$/, /local date \d{4}-\d\d-\d\d/],
])('a certificate with %s is explained', async (_, options, detail, advice) => {
  using others = makeCertificates(options);
  const { key, cert, caFile } = others;
  const step = await withServer({ key, cert }, (url) => tlsStepOf(url, { caFile }));
  expect(step).toMatchObject({
    outcome: 'fail',
    detail: expect.stringMatching(detail) as string,
    advice: expect.stringMatching(advice) as string,
  });
});

test('a certificate of an unknown authority is explained, with the authorities that are trusted', async () => {
  using others = makeCertificates({ days: 60 });
  const { key, cert } = others;
  expect(await withServer({ key, cert }, (url) => tlsStepOf(url))).toMatchObject({
    outcome: 'fail',
    detail: expect.stringMatching(/certificate of an unknown authority \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\)$/) as string,
    advice: expect.stringContaining(`set CA_FILE (now ${certificates.caFile}) to `) as string,
  });
});

test('protocol, cipher, certificate and its end are shown', async () => {
  using long = makeCertificates({ days: 60 });
  const { key, cert, caFile } = long;
  const step = await withServer({ key, cert }, (url) => tlsStepOf(url, { caFile }));
  expect(step?.outcome).toBe('ok');
  expect(step?.detail).toMatch(
    /^TLSv1\.3 \(TLS_\w+\), certificate CN=localhost by CN=Test CA, (?:59|60) days left \(\d{4}-\d\d-\d\d\)$/,
  );
});
