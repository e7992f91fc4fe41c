/**
 * Connections of undici's clients through a forward proxy of our own. The destination is this machine under an address that does not
 * count as loopback. test/e2e/egress-proxy.test.ts uses tinyproxy.
 */
import { once } from 'node:events';
import { createServer as createPlainServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect as connectTcp, createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { Client } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import { buildEgressConnector } from '../../../src/platform/egress/connector.ts';
import { getHostAndPort, createProxySelector } from '../../../src/platform/egress/proxy-selector.ts';
import { ProxyFault } from '../../../src/platform/connection-faults.ts';
import { describeFault } from '../../../src/platform/faults.ts';
import { openTunnel } from '../../../src/platform/egress/tunnel.ts';
import { loadTlsContext } from '../../../src/platform/tls.ts';
import { makeCertificates } from '../../support/certificates.ts';
import type { Certificates } from '../../support/certificates.ts';
import { freePort } from '../../support/loopback.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const SECRET = 's3same/ü@:';
const running = new AsyncDisposableStack();
let certificates: Certificates;
let plain: URL;
let secure: URL;

beforeAll(async () => {
  certificates = running.use(makeCertificates({ names: 'IP:0.0.0.0,DNS:localhost,IP:127.0.0.1' }));
  plain = new URL(`http://0.0.0.0:${await listen(createPlainServer((_, response) => response.end('plain')))}`);
  const { key, cert } = certificates;
  const server = createSecureServer({ key, cert }, (_, response) => response.end('secure'));
  secure = new URL(`https://0.0.0.0:${await listen(server)}`);
});
afterAll(() => running.disposeAsync());

async function listen(server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => socket.destroy())));
  await new Promise<void>((resolve) => server.listen(0, resolve));
  running.defer(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return String((server.address() as AddressInfo).port);
}

interface ProxyOptions {
  /** What is written once the request's head is there; default: a tunnel is opened. */
  readonly respond?: (client: Socket, destination: Socket) => void;
  /** TLS to the proxy itself. */
  readonly isSecure?: boolean;
}

interface TestProxy {
  readonly url: string;
  /** The heads received. */
  readonly heads: string[];
  readonly closed: Promise<unknown>;
}

async function startProxy({ respond, isSecure = false }: ProxyOptions = {}): Promise<TestProxy> {
  const heads: string[] = [];
  const closed = Promise.withResolvers<undefined>();
  const serve = (client: Socket): void => {
    client.on('error', () => client.destroy()).once('close', () => closed.resolve(undefined));
    client.once('data', (bytes: Buffer) => {
      const head = bytes.toString('latin1');
      heads.push(head);
      const [, host = '', port = ''] = /^CONNECT \[?([^\]]*?)\]?:(\d+) /.exec(head) ?? [];
      const destination = connectTcp(Number(port), host).on('error', () => client.destroy());
      client.once('close', () => destination.destroy());
      if (respond !== undefined) {
        respond(client, destination);
        return;
      }
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(destination).pipe(client);
    });
  };
  const { key, cert } = certificates;
  const port = await listen(isSecure ? createTlsServer({ key, cert }, serve) : createTcpServer(serve));
  return { url: `${isSecure ? 'https' : 'http'}://localhost:${port}`, heads, closed: closed.promise };
}

interface Terms {
  readonly caFile?: string | undefined;
  readonly proxyCaFile?: string | undefined;
  readonly timeoutMs?: number;
  readonly clock?: ManualClock;
  readonly signal?: AbortSignal;
}

/** The body of one GET, or its error. */
async function get(destination: URL, proxyUrl: string, terms: Terms = {}): Promise<string | Error> {
  const { caFile = certificates.caFile, proxyCaFile, timeoutMs = 5000, clock = systemClock, signal } = terms;
  const proxy = new URL(proxyUrl);
  const egress = createProxySelector({ proxy, httpProxy: proxy, noProxy: [], caFile: proxyCaFile });
  const secureContext = destination.protocol === 'https:' ? loadTlsContext(caFile) : undefined;
  const options = { destination, egress, secureContext, timeoutMs, clock, ...(signal && { signal }) };
  const client = new Client(destination.origin, { connect: buildEgressConnector(options) });
  try {
    const response = await client.request({ method: 'GET', path: '/' });
    return await response.body.text();
  } catch (error) {
    return error as Error;
  } finally {
    await client.destroy();
  }
}

const respondWith = (line: string) => (client: Socket) => client.end(`${line}\r\n\r\n`);

describe('a tunnel', () => {
  test('connects to http: and https: destinations, with TLS to the destination itself', async () => {
    const { url, heads } = await startProxy();
    const clock = new ManualClock();
    expect(await get(plain, url, { clock })).toBe('plain');
    expect(await get(secure, url, { clock })).toBe('secure');
    expect(clock.pendingTimers).toBe(0);
    expect(heads).toEqual([plain, secure].map(({ host }) => `CONNECT ${host} HTTP/1.1\r\nhost: ${host}\r\n\r\n`));
  });

  test('is requested with the decoded credentials of the URL', async () => {
    const { url, heads } = await startProxy();
    const withUser = url.replace('//', `//us%C3%A9r:${encodeURIComponent(SECRET)}@`);
    expect(await get(plain, withUser)).toBe('plain');
    const [, basic = ''] = /\r\nproxy-authorization: Basic (\S+)\r\n/.exec(heads[0] ?? '') ?? [];
    expect(Buffer.from(basic, 'base64').toString()).toBe(`usér:${SECRET}`);
  });

  test('names an IPv6 destination in brackets', async () => {
    const { url, heads } = await startProxy({ respond: respondWith('HTTP/1.1 502 Bad Gateway') });
    await get(new URL('http://[2001:db8::1]/'), url);
    expect(heads[0]).toMatch(/^CONNECT \[2001:db8::1\]:80 HTTP\/1\.1\r\nhost: \[2001:db8::1\]:80\r\n/);
  });

  test('relays bytes that come with the response of the proxy', async () => {
    const { url } = await startProxy({ respond: (client) => client.write('HTTP/1.0 200 OK\r\nVia: x\r\n\r\nearly') });
    const { signal } = new AbortController();
    const tunnel = await openTunnel({ url: new URL(url), tlsContext: undefined }, getHostAndPort(plain), signal);
    const [first] = (await once(tunnel, 'data')) as [Buffer];
    expect(first.toString()).toBe('early');
    tunnel.destroy();
  });

  test('is opened through an https: proxy with a trusted certificate', async () => {
    const { url } = await startProxy({ isSecure: true });
    expect(await get(secure, url, { proxyCaFile: certificates.caFile })).toBe('secure');
    const distrusted = await get(secure, url);
    expect(distrusted).toBeInstanceOf(ProxyFault);
    expect(distrusted).toMatchObject({
      fault: {
        proxyStatus: 'tls_certificate_error',
        permanence: 'certain',
        advice: expect.stringContaining('egress.caFile') as string,
      },
    });
  });

  test('does not make a destination trusted', async () => {
    using others = makeCertificates();
    const { url } = await startProxy();
    const error = await get(secure, url, { caFile: others.caFile });
    expect(error).not.toBeInstanceOf(ProxyFault);
    expect(error).toHaveProperty('code', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
  });
});

describe('a proxy that', () => {
  test.each([
    [
      'requires credentials',
      respondWith('HTTP/1.1 401 Unauthorized'),
      /does not accept the credentials \(401\)$/,
      true,
    ],
    [
      'requires other credentials',
      respondWith('HTTP/1.1 407 Proxy Authentication Required'),
      /does not accept the credentials \(407\)$/,
      true,
    ],
    [
      'forbids the destination',
      respondWith('HTTP/1.1 403 Filtered'),
      /does not allow a connection to 0\.0\.0\.0:\d+/,
      true,
    ],
    [
      'cannot connect',
      respondWith('HTTP/1.1 504 Gateway Timeout'),
      /could not connect to 0\.0\.0\.0:\d+ \(504\)/,
      false,
    ],
    [
      'redirects',
      respondWith('HTTP/1.1 302 Found\r\nLocation: http://elsewhere/'),
      /could not connect .*\(302\)/,
      false,
    ],
    [
      'accepts other credentials only',
      respondWith('HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM'),
      /asks for credentials by Negotiate or NTLM, which is not supported \(407\)$/,
      true,
    ],
    ['is a web server', respondWith('HTTP/1.1 405 Not Allowed'), /opens no tunnels \(405\)$/, true],
    ['speaks TLS', (client: Socket) => client.end('\x15\x03\x03\0\x02\x02\x46'), /speaks TLS on this port/, true],
    ['speaks no HTTP', respondWith('SSH-2.0-s3same'), /does not speak HTTP/, true],
    ['closes', (client: Socket) => client.destroy(), /cut the connection/, false],
  ] as const)('%s is named in the error, and its password is not', async (_, respond, words, isPermanent) => {
    const { url } = await startProxy({ respond });
    for (const destination of [plain, secure]) {
      const error = await get(destination, url.replace('//', '//user:s3same@'));
      expect(error).toBeInstanceOf(ProxyFault);
      expect(error).toHaveProperty('message', expect.stringMatching(words));
      expect((error as ProxyFault).fault.permanence).toBe(isPermanent ? 'certain' : undefined);
      expect(String(error)).toContain(`the egress proxy ${new URL(url).host} `);
      expect(String(error)).not.toMatch(/s3same|user:/);
    }
  });

  test('does not listen is reported as connection_refused', async () => {
    const error = await get(plain, `http://127.0.0.1:${String(await freePort())}`);
    expect(error).toMatchObject({ fault: { proxyStatus: 'connection_refused', permanence: undefined } });
    expect(await get(plain, 'http://nowhere.invalid:1')).toMatchObject({ fault: { proxyStatus: 'dns_error' } });
  });

  test.each([
    ['says nothing', () => undefined],
    ['opens the tunnel and then says nothing', (client: Socket) => client.write('HTTP/1.1 200 OK\r\n\r\n')],
  ])('%s is disconnected after the connect timeout', async (_, respond) => {
    const { url, closed, heads } = await startProxy({ respond });
    const clock = new ManualClock();
    // Longer than undici's own, real, timer could be waited for.
    const asking = get(secure, url, { clock, timeoutMs: 600_000 });
    while (heads.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(599_999);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(1);
    expect(describeFault(await asking, { address: 'url' }).proxyStatus).toBe('connection_timeout');
    await closed;
    expect(clock.pendingTimers).toBe(0);
  });

  test('says nothing is disconnected by an abort', async () => {
    const { url, closed, heads } = await startProxy({ respond: () => undefined });
    const aborter = new AbortController();
    const asking = get(secure, url, { signal: aborter.signal });
    while (heads.length === 0) await new Promise((resolve) => setImmediate(resolve));
    aborter.abort(new Error('aborted'));
    expect(await asking).toHaveProperty('message', 'aborted');
    await closed;
  });
});
