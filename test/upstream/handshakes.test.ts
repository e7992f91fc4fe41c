/** Handshakes that fail: what is named, when they are repeated, and the groups that are offered. */
import { createConnection, createServer as createPlainServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createTlsContextProvider } from '../../src/platform/tls.ts';
import { makeCertificates } from '../support/certificates.ts';
import type { Certificates } from '../support/certificates.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openUpstream, send } from './wire.ts';

let certificates: Certificates;
beforeAll(() => {
  certificates = makeCertificates();
});
afterAll(() => certificates[Symbol.dispose]());

async function urlOf(server: Server): Promise<URL> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return new URL(`https://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
}

const trust = (groups?: string) => createTlsContextProvider(certificates.caFile, undefined, groups);

/** Between the sidecar and a server: cuts each connection whose first message is longer. */
function startMiddlebox(target: URL, mostBytes: number): Promise<URL> {
  const relay = (client: Socket): void => {
    client
      .on('error', () => undefined)
      .once('data', (hello) => {
        if (hello.length > mostBytes) return void client.resetAndDestroy();
        const server = createConnection(Number(target.port), '127.0.0.1').on('error', () => undefined);
        server.write(hello);
        client.pipe(server).pipe(client);
      });
  };
  return urlOf(createPlainServer(relay));
}

describe('a middlebox that cuts connections whose ClientHello is long', () => {
  it('is named with upstream.tlsGroups, which makes it short', async () => {
    const { key, cert } = certificates;
    const server = createTlsServer({ key, cert }, (socket) => {
      socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
    const url = await startMiddlebox(await urlOf(server), 1400);
    await using upstream = openUpstream(url, { trust: trust() });
    expect(await send(upstream).end).toMatchObject({
      failure: {
        kind: 'unreachable',
        cause: 'reset_before_sent',
        detail: 'the upstream cut the connection in the TLS handshake, before it sent a byte (ECONNRESET)',
        advice: expect.stringContaining(
          'try X25519:P-256 for upstream.tlsGroups (SIDECAR_UPSTREAM_TLS_GROUPS)',
        ) as string,
        permanent: false,
      },
    });
    await using short = openUpstream(url, { trust: trust('X25519:P-256') });
    expect(await send(short).end).toMatchObject({ kind: 'relayed', head: { status: 200 } });
  });

  it('is not suspected once the server has sent something', async () => {
    const server = createPlainServer((socket) => {
      socket
        .on('error', () => undefined)
        .once('data', () => {
          // The begin of a TLS record.
          socket.write(Buffer.from('1603030040', 'hex'), () => setTimeout(() => socket.resetAndDestroy(), 50));
        });
    });
    await using upstream = openUpstream(await urlOf(server), { trust: trust() });
    expect(await send(upstream).end).toMatchObject({
      failure: { detail: 'the upstream cut the connection in the TLS handshake (ECONNRESET)' },
    });
  });
});

describe('a server that does not speak TLS', () => {
  it('is permanent, unless a connection has succeeded within a minute', async () => {
    const clock = new ManualClock();
    const { key, cert } = certificates;
    const secure = createTlsServer({ key, cert }, (socket) => {
      socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok');
    });
    let isSecure = false;
    const url = await urlOf(
      createPlainServer((socket) => {
        socket.on('error', () => undefined);
        if (isSecure) secure.emit('connection', socket);
        else socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
      }),
    );
    await using upstream = openUpstream(url, { trust: trust(), clock });
    const fault = {
      cause: 'tls',
      detail: expect.stringContaining('does not speak TLS on this port, perhaps plain HTTP (ERR_SSL_') as string,
      advice: expect.stringContaining('upstream.baseUrl') as string,
    };
    expect(await send(upstream).end).toMatchObject({ failure: { ...fault, permanent: true } });
    isSecure = true;
    expect(await send(upstream).end).toMatchObject({ kind: 'relayed' });
    isSecure = false;
    await clock.advance(59_000);
    expect(await send(upstream).end).toMatchObject({ failure: { ...fault, permanent: false } });
    await clock.advance(1000);
    expect(await send(upstream).end).toMatchObject({ failure: { ...fault, permanent: true } });
  });
});

describe('a handshake that fails for another reason', () => {
  it('has the words of OpenSSL', async () => {
    const alert = Buffer.from('15030300020250', 'hex');
    const server = createPlainServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.end(alert));
    });
    await using upstream = openUpstream(await urlOf(server), { trust: trust() });
    const end = await send(upstream).end;
    expect(end).toMatchObject({
      failure: { kind: 'unreachable', cause: 'tls', proxyStatus: 'tls_protocol_error', permanent: false },
    });
    expect(end.kind === 'failed' ? end.failure.detail : '').toMatch(
      /^the upstream did not complete the TLS handshake: [\w/ ]*alert internal error \(ERR_SSL_\S+\)$/,
    );
  });
});
