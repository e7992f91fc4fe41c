/** TLS to the upstream: trusted only through the authority that was named, and HTTP/1.1 alone is offered. */
import { createServer } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call } from '../support/calls.ts';
import { makeCertificates } from '../support/certificates.ts';
import type { Certificates } from '../support/certificates.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { newCredential, registerSecret } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

describe('an upstream with a certificate of a private authority', () => {
  let certificates: Certificates;
  const handshakes: { protocol: string | null; alpn: string | false | null }[] = [];
  let requests = 0;
  const cleanup = new AsyncDisposableStack();
  let url: string;

  beforeAll(async () => {
    certificates = cleanup.use(makeCertificates());
    const tls = { key: certificates.key, cert: certificates.cert, ALPNProtocols: ['h2', 'http/1.1'] };
    const server = createServer(tls, (request, response) => {
      requests++;
      registerSecret('an access token', (request.headers.authorization ?? '').replace('Bearer ', ''));
      response.end('secured');
    });
    server.on('secureConnection', (socket) => {
      handshakes.push({ protocol: socket.getProtocol(), alpn: socket.alpnProtocol });
    });
    url = (await listenOnLoopback(server)).replace('http:', 'https:');
    cleanup.defer(() => closeServer(server));
  });

  afterAll(() => cleanup.disposeAsync());

  it('is called when SIDECAR_CA_FILE names the authority', async () => {
    await using tokens = await startTokenServer();
    const env = { ...baseSettings(url, tokens.url, newCredential()), SIDECAR_CA_FILE: certificates.caFile };
    await using sidecar = await startSidecar({ name: 'tls-trusted', env });
    await waitUntilReady(sidecar);
    expect(await call(`${sidecar.proxyUrl}/things`)).toMatchObject({ status: 200, text: 'secured' });
    expect(handshakes).toEqual([{ protocol: 'TLSv1.3', alpn: 'http/1.1' }]);
  });

  it('is not called otherwise: 502 names the certificate, and no token is sent', async () => {
    const before = requests;
    await using tokens = await startTokenServer();
    await using sidecar = await startSidecar({
      name: 'tls-unknown',
      env: baseSettings(url, tokens.url, newCredential()),
    });
    await waitUntilReady(sidecar);
    const response = await call(`${sidecar.proxyUrl}/things`);
    expect(response.status).toBe(502);
    expect(response.headers['proxy-status']).toContain('error=tls_certificate_error');
    expect(JSON.parse(response.text)).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' });
    expect(requests).toBe(before);
  });
});
