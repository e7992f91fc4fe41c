/** Upgrades, with a WebSocket server and client that we did not write: `ws`. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type NetConnectOpts } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { newCredential, registerSecret } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { Environment, RunningSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

interface EchoChain extends AsyncDisposable {
  readonly sidecar: RunningSidecar;
  readonly authorizations: (string | undefined)[];
}

describe('a WebSocket', () => {
  it('echoes through the sidecar, which gives it the bearer', async () => {
    await using chain = await startEchoChain({ SIDECAR_WEBSOCKET: 'true' });
    const socket = new WebSocket(`${chain.sidecar.proxyUrl.replace('http', 'ws')}/feed?x=1`, {
      headers: { authorization: 'Basic bWU6bWU=' },
    });
    await once(socket, 'open');
    socket.send('one');
    expect(String(((await once(socket, 'message')) as [Buffer])[0])).toBe('/feed?x=1 one');
    const big = Buffer.alloc(300_000, 'z');
    socket.send(big);
    expect(((await once(socket, 'message')) as [Buffer])[0].length).toBe('/feed?x=1 '.length + big.length);
    socket.close(1000);
    const [code] = (await once(socket, 'close')) as [number];
    expect(code).toBe(1000);
    expect(chain.authorizations).toHaveLength(1);
    expect(chain.authorizations[0]).toMatch(/^Bearer tok-/);
  });

  it('of a program that names the listener as its origin, as websocket-client of Python does, is let in', async () => {
    await using chain = await startEchoChain({ SIDECAR_WEBSOCKET: 'true' });
    const { proxyUrl } = chain.sidecar;
    const socket = new WebSocket(`${proxyUrl.replace('http', 'ws')}/feed`, { origin: proxyUrl });
    await once(socket, 'open');
    socket.close();
    await once(socket, 'close');
    const browser = { origin: proxyUrl, 'sec-fetch-mode': 'websocket' };
    expect(await statusOf(chain.sidecar, browser)).toBe(403);
    expect(chain.authorizations).toHaveLength(1);
  });

  it('from a foreign web page is refused, and never reaches the upstream', async () => {
    await using chain = await startEchoChain({ SIDECAR_WEBSOCKET: 'true' });
    const refused = await statusOf(chain.sidecar, { origin: 'https://evil.example' });
    expect(refused).toBe(403);
    expect(chain.authorizations).toHaveLength(0);
  });

  it('is refused unless it was allowed', async () => {
    await using chain = await startEchoChain({});
    expect(await statusOf(chain.sidecar, {})).toBe(403);
    expect(chain.authorizations).toHaveLength(0);
  });
});

describe('a target that is no URL', () => {
  it('has a port that there is none of: it is refused, and the process lives on', async () => {
    await using chain = await startEchoChain({ SIDECAR_WEBSOCKET: 'true' });
    const { hostname, port } = new URL(chain.sidecar.proxyUrl);
    const address = { host: hostname, port: Number(port) };
    expect(await firstLine(address, 'http://localhost:99999/')).toBe('HTTP/1.1 400 Bad Request');
    expect(await firstLine(address, '/feed')).toBe('HTTP/1.1 101 Switching Protocols');
    expect(await chain.sidecar.stop()).toEqual({ code: 0, signal: null });
  });

  it('ignores the authority of a target on a socket file: only the path counts', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'websocket-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'proxy.sock');
    await using chain = await startEchoChain({ SIDECAR_WEBSOCKET: 'true', SIDECAR_LISTEN: `unix:${path}` });
    for (const target of ['http://[/feed', 'http://localhost:99999/feed', '/feed'])
      expect([target, await firstLine({ path }, target)]).toEqual([target, 'HTTP/1.1 101 Switching Protocols']);
    expect(await chain.sidecar.stop()).toEqual({ code: 0, signal: null });
  });
});

/** The first response to an upgrade; the connection is then closed like a WebSocket. */
async function firstLine(address: NetConnectOpts, target: string): Promise<string> {
  const socket = connect(address);
  socket.write(
    `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  const [data] = (await once(socket, 'data')) as [Buffer];
  socket.end('\x88\x80\0\0\0\0', 'latin1').resume();
  await once(socket, 'close');
  return data.toString('latin1').split('\r\n')[0] ?? '';
}

async function statusOf(sidecar: RunningSidecar, headers: Record<string, string>): Promise<number> {
  const socket = new WebSocket(sidecar.proxyUrl.replace('http', 'ws'), { headers });
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }];
  // What ws reports for a connection that it never had; without a listener it would end the test.
  socket.on('error', () => undefined);
  socket.terminate();
  return response.statusCode;
}

async function startEchoChain(env: Environment): Promise<EchoChain> {
  await using cleanup = new AsyncDisposableStack();
  const authorizations: (string | undefined)[] = [];
  const server = createServer();
  const echo = new WebSocketServer({ server });
  echo.on('connection', (socket, request) => {
    const bearer = request.headers.authorization;
    authorizations.push(bearer);
    if (bearer !== undefined) registerSecret('an access token', bearer.replace('Bearer ', ''));
    socket.on('message', (data: Buffer) => socket.send(`${String(request.url)} ${data.toString()}`));
  });
  const url = await listenOnLoopback(server);
  cleanup.defer(() => closeServer(server));
  cleanup.defer(() => {
    for (const socket of echo.clients) socket.terminate();
  });
  const tokens = cleanup.use(await startTokenServer());
  const sidecar = cleanup.use(
    await startSidecar({ name: 'websocket', env: { ...baseSettings(url, tokens.url, newCredential()), ...env } }),
  );
  await waitUntilReady(sidecar);
  const all = cleanup.move();
  return { sidecar, authorizations, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
