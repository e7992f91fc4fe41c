/** What a handshake shows of a server, with servers of two libraries. */
import { createServer } from 'node:https';
import type { ServerOptions } from 'node:https';
import { connect } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import { performHandshake } from '../../../src/commands/check/tls-handshake.ts';
import { loadTlsContext } from '../../../src/platform/tls.ts';
import type { ClientCertificateFiles } from '../../../src/platform/tls.ts';
import { makeCertificates } from '../../support/certificates.ts';
import type { Certificates } from '../../support/certificates.ts';
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

async function shake(url: string | URL, files?: ClientCertificateFiles) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  await once(socket, 'connect');
  return performHandshake({
    socket,
    host: hostname,
    context: loadTlsContext(certificates.caFile, files),
    isHttp: true,
    timeoutMs: 5000,
    clock: systemClock,
    signal: new AbortController().signal,
  });
}

async function withServer<T>(options: ServerOptions, run: (url: string) => Promise<T>): Promise<T> {
  const { key, cert, ca } = certificates;
  const server = createServer({ key, cert, ca, rejectUnauthorized: false, ...options });
  try {
    return await run((await listenOnLoopback(server)).replace('http:', 'https:'));
  } finally {
    await closeServer(server);
  }
}

test('reports the alert of a server that requires a certificate', async () => {
  await using openssl = await startOpensslServer(certificates);
  expect(await shake(openssl.url)).toMatchObject({
    kind: 'secured',
    refusal: expect.stringMatching(/_ALERT_CERTIFICATE_REQUIRED$/) as string,
  });
  expect(await shake(openssl.url, certificates.issue('legacy-app'))).toMatchObject({
    refusal: undefined,
  });
});

test('a certificate that nginx wants by HTTP only is no fault of the handshake', async () => {
  await using nginx = await startVerifyingNginx(certificates);
  expect(await shake(nginx.url)).toMatchObject({ kind: 'secured', refusal: undefined });
});

test('reports an untrusted certificate', async () => {
  using others = makeCertificates({ names: 'DNS:other.example' });
  const { key, cert } = others;
  await withServer({ key, cert }, async (url) => {
    const shown = await shake(url);
    expect(shown).toMatchObject({ kind: 'secured', distrust: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' });
    expect(shown.kind === 'secured' && shown.chain[0]).toMatchObject({
      subject: 'CN=localhost',
      issuer: 'CN=Test CA',
      names: 'other.example',
    });
  });
});
