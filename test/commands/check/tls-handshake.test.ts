/** Whether a server requests a client certificate, with TLS 1.2 and 1.3 and servers of two libraries. */
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

test.each([
  ['TLS 1.3', {}],
  ['TLS 1.2', { maxVersion: 'TLSv1.2' }],
  ['TLS 1.3 after a second ClientHello', { ecdhCurve: 'P-521' }],
  ['TLS 1.3 with the other hash', { ciphers: 'TLS_AES_128_GCM_SHA256' }],
] as const)('%s: reports whether the server requests a certificate', async (_, options) => {
  const files = certificates.issue('legacy-app');
  for (const requestCert of [false, true]) {
    await withServer({ ...options, requestCert }, async (url) => {
      const expected = {
        kind: 'secured',
        isCertificateRequested: requestCert,
        distrust: undefined,
        refusal: undefined,
      };
      expect(await shake(url)).toMatchObject(expected);
      expect(await shake(url, files)).toMatchObject(expected);
    });
  }
});

test('reports the alert of a server that requires a certificate', async () => {
  await using openssl = await startOpensslServer(certificates);
  expect(await shake(openssl.url)).toMatchObject({
    kind: 'secured',
    isCertificateRequested: true,
    refusal: expect.stringMatching(/_ALERT_CERTIFICATE_REQUIRED$/) as string,
  });
  expect(await shake(openssl.url, certificates.issue('legacy-app'))).toMatchObject({
    isCertificateRequested: true,
    refusal: undefined,
  });
});

test('reports the certificate request of nginx, which refuses by HTTP only', async () => {
  await using nginx = await startVerifyingNginx(certificates);
  expect(await shake(nginx.url)).toMatchObject({ kind: 'secured', isCertificateRequested: true, refusal: undefined });
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
