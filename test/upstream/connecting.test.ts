/** Upstreams that cannot be reached, and TLS: private authorities, wrong names, old versions, servers that say nothing. */
import { createSecureServer as createHttp2Server } from 'node:http2';
import { createServer as createPlainServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { TLSSocket, TlsOptions } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toSidecarError } from '../../src/exchange/attempt-outcome.ts';
import { createTlsContextProvider } from '../../src/platform/tls.ts';
import type { AttemptResult } from '../../src/upstream/response-receiver.ts';
import { makeCertificates } from '../support/certificates.ts';
import type { Certificates } from '../support/certificates.ts';
import { freePort } from '../support/loopback.ts';
import { openUpstream, send } from './wire.ts';
import type { UpstreamOptions } from '../../src/upstream/client.ts';

let certificates: Certificates;
beforeAll(() => {
  certificates = makeCertificates();
});
afterAll(() => certificates[Symbol.dispose]());

async function portOf(server: Server, host = '127.0.0.1'): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as AddressInfo).port;
}

/** The end of one GET of an `https:` upstream with the test's own certificate. */
async function overTls(terms: {
  server?: TlsOptions;
  host?: string;
  trusted?: boolean;
  options?: Partial<UpstreamOptions>;
}) {
  const { host = '127.0.0.1', trusted = true } = terms;
  const server = createTlsServer({ key: certificates.key, cert: certificates.cert, ...terms.server }, (socket) => {
    socket.on('error', () => socket.destroy()).end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  });
  const port = await portOf(server, host);
  const trust = createTlsContextProvider(trusted ? certificates.caFile : undefined);
  await using upstream = openUpstream(new URL(`https://${host}:${String(port)}`), { trust, ...terms.options });
  const end = await send(upstream).end;
  server.close();
  return end;
}

function wordsOf(end: AttemptResult): string {
  return end.kind === 'failed' ? toSidecarError(end.failure).message : '';
}

describe('TLS', () => {
  it('with the configured authority', async () => {
    expect(await overTls({})).toMatchObject({ kind: 'relayed', head: { status: 200 }, fault: undefined });
  });

  it('with an untrusted authority is refused, and never retried', async () => {
    const end = await overTls({ trusted: false });
    expect(end).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable', proxyStatus: 'tls_certificate_error', permanent: true },
    });
    expect(wordsOf(end)).toContain('SIDECAR_CA_FILE');
  });

  it('with a certificate for another name is refused', async () => {
    expect(await overTls({ host: '127.0.0.2' })).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable', proxyStatus: 'tls_certificate_error', permanent: true },
    });
  });

  it.each([
    ['that has run out', { days: -1 }, 'CERT_HAS_EXPIRED'],
    ['for another host name', { names: 'DNS:other.example' }, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ])('with a trusted certificate %s is refused, and never tried again', async (_, options, code) => {
    using own = makeCertificates(options);
    const end = await overTls({ server: own, options: { trust: createTlsContextProvider(own.caFile) } });
    expect(end).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable', proxyStatus: 'tls_certificate_error', permanent: true },
    });
    expect(end.kind === 'failed' ? end.failure.detail : '').toContain(code);
  });

  it.each([
    ['that has run out', { days: -1 }, /certificate that has expired .*renew it.*clock here/, /SIDECAR_CA_FILE/],
    [
      'for other names',
      { names: 'DNS:a.example,DNS:b.example' },
      /it is for a\.example, b\.example/,
      /SIDECAR_CA_FILE/,
    ],
  ])('with a trusted certificate %s says what to do', async (_, options, words, notWords) => {
    using own = makeCertificates(options);
    const end = await overTls({ server: own, options: { trust: createTlsContextProvider(own.caFile) } });
    expect(wordsOf(end)).toMatch(words);
    expect(wordsOf(end)).not.toMatch(notWords);
  });

  it('with a server that speaks only HTTP/2 says so, and is never tried again', async () => {
    const server = createHttp2Server({ key: certificates.key, cert: certificates.cert });
    const port = await portOf(server);
    const trust = createTlsContextProvider(certificates.caFile);
    await using upstream = openUpstream(new URL(`https://127.0.0.1:${String(port)}`), { trust });
    const end = await send(upstream).end;
    server.close();
    expect(end).toMatchObject({
      kind: 'failed',
      failure: {
        kind: 'unreachable',
        detail: expect.stringMatching(/^the upstream speaks only HTTP\/2, which is not supported \(/) as string,
        advice: expect.stringMatching(/^ask the operator for HTTP\/1\.1/) as string,
        proxyStatus: 'tls_protocol_error',
        permanent: true,
      },
    });
  });

  it.each(['https', 'http'])('with a server of %s that begins with HTTP/2 frames says so', async (protocol) => {
    const startHttp2 = (socket: Socket): void => {
      // SETTINGS, and then GOAWAY for what is not a connection preface.
      socket.on('error', () => socket.destroy());
      socket.write(Buffer.from('00001204000000000000030000008000040010000000050000ffff', 'hex'));
      socket.end(Buffer.from('0000080700000000000000000000000001', 'hex'));
    };
    const { key, cert } = certificates;
    const server = protocol === 'http' ? createPlainServer(startHttp2) : createTlsServer({ key, cert }, startHttp2);
    const port = await portOf(server);
    const trust = protocol === 'http' ? undefined : createTlsContextProvider(certificates.caFile);
    await using upstream = openUpstream(new URL(`${protocol}://127.0.0.1:${String(port)}`), { trust });
    const end = await send(upstream).end;
    server.close();
    const detail: unknown = expect.stringContaining('speaks only HTTP/2, which is not supported');
    expect(end).toMatchObject({ kind: 'failed', failure: { kind: 'protocol', detail, permanent: true } });
  });

  it('offers HTTP/1.1 alone', async () => {
    let agreed: TLSSocket['alpnProtocol'] = null;
    const ALPNCallback = ({ protocols }: { protocols: string[] }): string | undefined => {
      agreed = protocols.join();
      return protocols.at(-1);
    };
    expect(await overTls({ server: { ALPNCallback } })).toMatchObject({ kind: 'relayed' });
    expect(agreed).toBe('http/1.1');
  });

  it('of a version below 1.2 is refused', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    expect(await overTls({ server: old })).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable', proxyStatus: 'tls_protocol_error' },
    });
    expect(await overTls({ server: { maxVersion: 'TLSv1.2' } })).toMatchObject({ kind: 'relayed' });
  });

  it('where the upstream speaks plain text is refused', async () => {
    const server = createPlainServer((socket) => {
      socket.on('error', () => socket.destroy()).end('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
    const trust = createTlsContextProvider(certificates.caFile);
    await using upstream = openUpstream(new URL(`https://127.0.0.1:${String(await portOf(server))}`), {
      trust,
    });
    expect(await send(upstream).end).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable', proxyStatus: 'tls_protocol_error' },
    });
    server.close();
  });

  it('that never responds counts as a connection that did not open in time', async () => {
    const server = createPlainServer((socket) => socket.on('error', () => socket.destroy()).resume());
    const trust = createTlsContextProvider(certificates.caFile);
    const options = { trust, connectTimeoutMs: 200 };
    await using upstream = openUpstream(new URL(`https://127.0.0.1:${String(await portOf(server))}`), options);
    expect(await send(upstream).end).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable', proxyStatus: 'connection_timeout', permanent: false },
    });
    server.close();
  });
});

describe('an address', () => {
  it('refuses every request while the upstream is down, and serves again once it listens', async () => {
    const server = createPlainServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.once('data', () => socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
    });
    const port = await freePort();
    await using upstream = openUpstream(new URL(`http://127.0.0.1:${String(port)}`), { maxConnections: 2 });
    const ends = await Promise.all(Array.from({ length: 6 }, () => send(upstream).end));
    for (const end of ends) {
      expect(end).toMatchObject({
        kind: 'failed',
        failure: { kind: 'unreachable', proxyStatus: 'connection_refused', permanent: false },
      });
    }
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    expect((await send(upstream).end).kind).toBe('relayed');
    server.close();
  });

  it('whose name does not exist', async () => {
    await using upstream = openUpstream(new URL('http://nowhere.invalid:1'));
    expect(await send(upstream).end).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable', proxyStatus: 'dns_error' },
    });
  });
});
