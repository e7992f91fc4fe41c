/**
 * Both destinations through a forward proxy that we did not write: tinyproxy. They listen on this machine under an address
 * that does not count as loopback, which is never proxied.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { call } from '../support/calls.ts';
import { makeCertificates } from '../support/certificates.ts';
import type { Certificates } from '../support/certificates.ts';
import { closeServer, freePort } from '../support/loopback.ts';
import { newCredential, registerSecret } from '../support/secrets.ts';
import { baseSettings, spawnSidecar, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { Environment } from '../support/sidecar-process.ts';
import { startTinyproxy } from '../support/tinyproxy.ts';
import type { Tinyproxy } from '../support/tinyproxy.ts';
import { startTokenServer } from '../support/token-server.ts';

const running = new AsyncDisposableStack();
const user = { name: 'legacy', password: `p${randomBytes(9).toString('hex')}` };
registerSecret("the proxy's password", user.password);
registerSecret("the proxy's user and password, joined for Basic", `${user.name}:${user.password}`);

let certificates: Certificates;
let proxy: Tinyproxy;
let tokenHost: string;
let upstreamHost: string;
const bearers: (string | undefined)[] = [];

async function serve(respond: RequestListener): Promise<{ server: Server; host: string }> {
  const server = createServer({ key: certificates.key, cert: certificates.cert }, respond);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  running.defer(() => closeServer(server));
  return { server, host: `0.0.0.0:${String((server.address() as AddressInfo).port)}` };
}

beforeAll(async () => {
  certificates = running.use(makeCertificates({ names: 'IP:0.0.0.0' }));
  proxy = running.use(await startTinyproxy({ user }));
  const tokens = await serve((_, response) => {
    const token = randomBytes(18).toString('base64url');
    registerSecret('an access token', token);
    response.end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 3600 }));
  });
  const upstream = await serve((request, response) => {
    bearers.push(request.headers.authorization);
    request.pipe(response);
  });
  new WebSocketServer({ server: upstream.server }).on('connection', (socket) => {
    socket.on('message', (data) => socket.send(data));
  });
  tokenHost = tokens.host;
  upstreamHost = upstream.host;
});
afterAll(() => running.disposeAsync());

function environment(more: Environment): Environment {
  return {
    ...baseSettings(`https://${upstreamHost}`, `https://${tokenHost}`, newCredential()),
    SIDECAR_CA_FILE: certificates.caFile,
    ...more,
  };
}

const withUser = (): string => `http://${user.name}:${user.password}@${proxy.host}`;

/** Those asked for while `run` runs. */
async function tunnelsOf(run: () => Promise<void>): Promise<string[]> {
  const before = proxy.tunnels().length;
  await run();
  return [...new Set(proxy.tunnels().slice(before))].toSorted();
}

describe('through tinyproxy with a password', () => {
  it.each([
    ['HTTPS_PROXY', 'HTTPS_PROXY'],
    ['https_proxy', 'https_proxy'],
    ['SIDECAR_EGRESS_PROXY', 'SIDECAR_EGRESS_PROXY'],
  ])('%s leads to the token endpoint and to the upstream', async (name, variable) => {
    const tunnels = await tunnelsOf(async () => {
      await using sidecar = await startSidecar({
        name: `egress-${name}`,
        env: environment({ [variable]: withUser() }),
      });
      await waitUntilReady(sidecar);
      bearers.length = 0;
      const response = await call(`${sidecar.proxyUrl}/quotes`, { method: 'POST', body: '{"a":1}' });
      expect(response).toMatchObject({ status: 200, text: '{"a":1}' });
      expect(bearers).toEqual([expect.stringMatching(/^Bearer [\w-]{24}$/)]);
    });
    expect(tunnels).toEqual([tokenHost, upstreamHost].toSorted());
  });

  it('NO_PROXY and a setting of its own lead around it', async () => {
    for (const more of [{ NO_PROXY: upstreamHost }, { NO_PROXY: 'a.test', SIDECAR_EGRESS_NO_PROXY: upstreamHost }]) {
      const tunnels = await tunnelsOf(async () => {
        const env = environment({ HTTPS_PROXY: withUser(), ...more });
        await using sidecar = await startSidecar({ name: 'egress-no-proxy', env });
        await waitUntilReady(sidecar);
        expect((await call(`${sidecar.proxyUrl}/quotes`)).status).toBe(200);
      });
      expect(tunnels).toEqual([tokenHost]);
    }
    const none = await tunnelsOf(async () => {
      const env = environment({ HTTPS_PROXY: withUser(), SIDECAR_EGRESS_PROXY: 'none' });
      await using sidecar = await startSidecar({ name: 'egress-none', env });
      await waitUntilReady(sidecar);
    });
    expect(none).toEqual([]);
  });

  it('a WebSocket takes the same way', async () => {
    const tunnels = await tunnelsOf(async () => {
      const env = environment({ HTTPS_PROXY: withUser(), SIDECAR_WEBSOCKET: 'true' });
      await using sidecar = await startSidecar({ name: 'egress-websocket', env });
      await waitUntilReady(sidecar);
      const socket = new WebSocket(`${sidecar.proxyUrl.replace('http', 'ws')}/events`);
      await once(socket, 'open');
      socket.send('hello');
      const [echoed] = (await once(socket, 'message')) as [Buffer];
      expect(echoed.toString()).toBe('hello');
      socket.terminate();
    });
    expect(tunnels).toEqual([tokenHost, upstreamHost].toSorted());
  });

  it('check takes the same way, and prints no password', async () => {
    const tunnels = await tunnelsOf(async () => {
      await using check = spawnSidecar({
        name: 'egress-check',
        args: ['check'],
        env: environment({ HTTPS_PROXY: withUser() }),
      });
      expect(await check.exit).toMatchObject({ code: 0 });
      expect(check.stdout()).toMatch(/^ok +token +token endpoint .*obtained from /m);
      expect(check.stdout()).toMatch(/^ok +connect +upstream .*through the egress proxy 127\.0\.0\.1:/m);
      expect(check.stdout()).toMatch(/^\w+ +tls +upstream .*TLSv1\.3/m);
    });
    expect(tunnels).toEqual([tokenHost, upstreamHost].toSorted());
  });
});

describe('a proxy that stands in the way', () => {
  it.each([
    [
      'wants another password',
      () => withUser().replace(user.password, 'wrong-password'),
      'does not accept the credentials (401)',
      'destination_unavailable',
    ],
    [
      'is not there',
      () => `http://127.0.0.1:${String(unused)}`,
      'refused the connection (ECONNREFUSED)',
      'connection_refused',
    ],
  ])('and %s is named in a 502', async (name, url, words, proxyStatus) => {
    await using tokens = await startTokenServer();
    const env = environment({ SIDECAR_AUTH_URL: tokens.url, HTTPS_PROXY: url() });
    await using sidecar = await startSidecar({ name: `egress-${name.replaceAll(' ', '-')}`, env });
    await waitUntilReady(sidecar);
    const response = await call(`${sidecar.proxyUrl}/quotes`);
    expect(response).toMatchObject({
      status: 502,
      headers: { 'proxy-status': expect.stringContaining(`error=${proxyStatus}`) as unknown },
    });
    const problem = JSON.parse(response.text) as { code: string; detail: string };
    expect(problem.code).toBe('UPSTREAM_UNREACHABLE');
    expect(problem.detail).toContain(`the egress proxy ${new URL(url()).host} `);
    expect(problem.detail).toContain(words);
  });

  it('of the token endpoint is named in a 503', async () => {
    const env = environment({ HTTPS_PROXY: withUser().replace(user.password, 'wrong-password') });
    await using sidecar = await startSidecar({ name: 'egress-token-407', env });
    const response = await call(`${sidecar.proxyUrl}/quotes`);
    expect(response.status).toBe(503);
    expect(JSON.parse(response.text)).toMatchObject({
      code: 'TOKEN_UNAVAILABLE',
      detail: expect.stringContaining(`${tokenHost} cannot be reached: the egress proxy ${proxy.host} `) as unknown,
    });
  });

  let unused: number;
  beforeAll(async () => {
    unused = await freePort();
  });
});
