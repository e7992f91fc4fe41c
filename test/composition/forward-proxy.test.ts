/** A sidecar that is its application's http_proxy: what the upstream and the client receive. */
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { sendRaw } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { startInProcess } from './in-process.ts';

const FORWARD = { SIDECAR_LISTEN_FORWARD_PROXY: 'true' };

it('forwards the path of the URL, without the fields for a proxy, and keeps its base path in Location', async () => {
  await using upstream = await startRecordingUpstream((request, response) => {
    const to = new URL('/sales/v1/policies/7?a=b', `http://${request.headers.host ?? ''}`);
    response.writeHead(201, { location: request.path.endsWith('/relative') ? '7' : to.href }).end('made');
  });
  const { url } = await startInProcess({ apiUrl: `${upstream.url}/sales/v1`, env: FORWARD });
  const authority = new URL(upstream.url).host;
  const fields = 'Proxy-Authorization: Basic bWU6bWU=\r\nProxy-Connection: keep-alive\r\nConnection: close\r\n';
  const post = (path: string): string =>
    `POST http://${authority}${path} HTTP/1.1\r\nHost: ${authority}\r\n${fields}Content-Length: 2\r\n\r\nhi`;
  const reply = await sendRaw(url, post('/sales/v1/policies?q=%2e'));
  expect([reply.status, reply.headers.location]).toEqual([201, '/sales/v1/policies/7?a=b']);
  expect((await sendRaw(url, post('/sales/v1/relative'))).headers.location).toBe('/sales/v1/7');
  const [first] = upstream.requests;
  expect(first).toMatchObject({ method: 'POST', path: '/sales/v1/policies?q=%2e' });
  expect(String(first?.body)).toBe('hi');
  expect(first?.headers.authorization).toMatch(/^Bearer token-1/);
  for (const name of ['proxy-authorization', 'proxy-connection']) expect(first?.headers).not.toHaveProperty(name);
  for (const path of ['/sales/v2/x', '/', '/sales/v1/../v2', '/sales/v1/%2e%2e/x'])
    expect((await sendRaw(url, post(path))).status).toBe(400);
  expect(upstream.requests).toHaveLength(2);
});

it('without listen.forwardProxy refuses the upstream’s URL and names the setting; another local port is never forwarded', async () => {
  const { url, api, events } = await startInProcess();
  const authority = new URL(api.url).host;
  const get = (host: string): string => `GET http://${host}/x HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
  const refusal = await sendRaw(url, get(authority));
  expect(refusal.status).toBe(403);
  expect(refusal.body.toString()).toContain('SIDECAR_LISTEN_FORWARD_PROXY=true (listen.forwardProxy)');
  for (const host of ['localhost:9999', '127.0.0.1:1', 'localhost']) {
    const reply = await sendRaw(url, get(host));
    expect([reply.status, JSON.parse(reply.body.toString())]).toMatchObject([403, { code: 'HOST_NOT_ALLOWED' }]);
  }
  expect(api.requests).toEqual([]);
  expect((await sendRaw(url, get(new URL(url).host))).status).toBe(200);
  expect(api.requests.map(({ path }) => path)).toEqual(['/x']);
  expect(events.filter(({ kind }) => kind === 'request-ended')).toHaveLength(5);
});

it('opens a WebSocket that names the upstream', async () => {
  const key = 'dGhlIHNhbXBsZSBub25jZQ==';
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  await using upstream = await startRecordingUpstream();
  const seen: (string | undefined)[] = [];
  upstream.server.on('upgrade', (request, socket) => {
    seen.push(request.url);
    socket.end(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
  });
  const { url } = await startInProcess({
    apiUrl: `${upstream.url}/v1`,
    env: { ...FORWARD, SIDECAR_WEBSOCKET: 'true' },
  });
  const authority = new URL(upstream.url).host;
  const open = (path: string) =>
    sendRaw(
      url,
      `GET http://${authority}${path} HTTP/1.1\r\nHost: ${authority}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
    );
  expect((await open('/v1/feed?a')).status).toBe(101);
  expect((await open('/v2/feed')).status).toBe(400);
  expect(seen).toEqual(['/v1/feed?a']);
});
