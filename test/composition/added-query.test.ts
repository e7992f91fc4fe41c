/** Fixed query parameters of a running sidecar: in every call, in no output of its own, and in no reference that a client gets. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { renderConfig } from '../../src/commands/render-config.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { createLog } from '../../src/telemetry/log/log.ts';
import { BASE_ENV, problemsOf, scratchDirectory, scratchFile } from '../config/base-env.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';
import { registerSecret } from '../support/secrets.ts';
import { MemoryStream } from '../telemetry/log/memory-stream.ts';
import { startInProcess, until } from './in-process.ts';
import { startRawUpstream } from './raw-upstream.ts';
import { send } from './send.ts';

const KEY = 'k3y+of/the=partner&2026';
const ENCODED = encodeURIComponent(KEY);
for (const secret of [KEY, ENCODED]) registerSecret('a value of upstream.query', secret);

const envOf = (query: object) => ({ SIDECAR_UPSTREAM_QUERY: JSON.stringify(query) });

function targetOf(head: string): string {
  return / (\S+) HTTP\/1\.1/.exec(head)?.[1] ?? '';
}

it('is in each attempt, also after a 429, of an absolute-form call and of a WebSocket upgrade', async () => {
  const targets: string[] = [];
  const upstream = await startRawUpstream((socket, index, head) => {
    targets.push(targetOf(head));
    const status = index === 0 ? '429 Too Many Requests\r\nRetry-After: 0' : '404 Not Found';
    socket.write(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`);
  });
  const env = { ...envOf({ api_key: KEY }), SIDECAR_WEBSOCKET: 'true', SIDECAR_LISTEN_FORWARD_PROXY: 'true' };
  const { url } = await startInProcess({ apiUrl: upstream.url, env: { ...env, SIDECAR_RETRY_ATTEMPTS: '4' } });
  const expected = `?b=1;c&&API-KEY=x&api_key=${ENCODED}`;
  await send(`${url}/a?b=1;c&API%5fkey=mine&&API-KEY=x`);
  for (const target of [`${url}/abs?api_key`, `${upstream.url}/abs?api_key`])
    await sendRaw(url, `GET ${target} HTTP/1.1\r\nHost: ${new URL(target).host}\r\nConnection: close\r\n\r\n`);
  const socket = await openSocket(url);
  const reply = readToEnd(socket);
  socket.write(
    'GET /ws?api_key=mine&b=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  await reply;
  expect(targets).toEqual([
    `/a${expected}`,
    `/a${expected}`,
    `/abs?api_key=${ENCODED}`,
    `/abs?api_key=${ENCODED}`,
    `/ws?b=1&api_key=${ENCODED}`,
  ]);
});

it('is the only credential where method static has no token file: no field carries a key', async () => {
  const path = scratchFile(`${KEY}\n`);
  const none = { SIDECAR_AUTH_URL: '', SIDECAR_CLIENT_ID: '', SIDECAR_CLIENT_SECRET: '', SIDECAR_AUDIENCE: '' };
  const received: (string | undefined)[] = [];
  const { url } = await startInProcess({
    env: { ...none, ...envOf({ api_key: { file: path } }), SIDECAR_AUTH_METHOD: 'static' },
    respond: ({ headers, path: target }, response) => {
      received.push(target, headers.authorization);
      response.writeHead(200).end();
    },
  });
  await until(async () => (await send(`${url}/a`, { headers: { authorization: 'mine' } })).status === 200, 'a key');
  expect(new Set(received)).toEqual(new Set([`/a?api_key=${ENCODED}`, undefined]));
});

it('is in no log line, recent call, metric, record of a call, reply or reference', async () => {
  const stream = new MemoryStream();
  const log = createLog({ level: 'debug', destination: stream });
  const calls = join(scratchDirectory(), 'calls');
  const { url, sidecar } = await startInProcess({
    log,
    respond: (request, response) => {
      const echoed = `http://${request.headers.host ?? ''}${request.path}`;
      if (request.path.startsWith('/cut')) return void response.socket?.destroy();
      response.writeHead(302, {
        ...{ location: echoed, 'content-location': echoed, link: `<${echoed}>; rel=next, ${echoed}` },
        refresh: `0;url=${echoed}`,
        'x-next': `/login?next=${encodeURIComponent(echoed)}`,
      });
      response.end(echoed);
    },
    env: {
      ...envOf({ api_key: KEY }),
      SIDECAR_ADMIN_RECENT_CALLS: 'true',
      SIDECAR_RETRY_ATTEMPTS: '1',
      SIDECAR_UNKNOWN_CALLS_FILE: calls,
    },
  });
  const reply = await send(`${url}/a?b=1`);
  for (const name of ['location', 'content-location']) expect(reply.fields[name]).toBe('/a?b=1');
  expect(reply.fields.refresh).toBe('0;url=/a?b=1');
  expect(reply.fields.link).toMatch(/^<\/a\?b=1>; rel=next, http:\S+\/a\?b=1&api_key=\*{8}$/);
  // Bodies and other fields are the partner's.
  expect(reply.text).toContain(ENCODED);
  expect(reply.fields['x-next']).toContain(encodeURIComponent(ENCODED));
  const cut = await send(`${url}/cut`, { method: 'POST', body: '{}' });
  expect(cut.status).toBe(502);
  const pages = await Promise.all(
    ['/status', '/metrics', '/'].map(async (path) => (await fetch(sidecar.adminUrl + path)).text()),
  );
  const own = [...pages, stream.text, JSON.stringify(cut), await readFile(calls, 'utf8')].join('\n');
  expect(own).toContain('/cut');
  await log.close(0);
  for (const secret of [KEY, ENCODED, encodeURIComponent(ENCODED)]) expect(own).not.toContain(secret);
});

it('is read again from its file when that changes', async () => {
  const path = join(scratchDirectory(), 'key');
  await writeFile(path, 'first key\n');
  const clock = new ManualClock();
  const { url, api, eventsOf } = await startInProcess({ clock, env: envOf({ key: { file: path } }) });
  const sent = async () => {
    await send(`${url}/a`);
    return api.requests.at(-1)?.path;
  };
  expect(await sent()).toBe('/a?key=first%20key');
  await writeFile(path, 'second');
  await clock.advance(2000);
  await until(async () => (await sent()) === '/a?key=second', 'the new value is used');
  const detail = 'upstream.query key';
  expect(eventsOf('credential-rotation')).toEqual([
    { kind: 'credential-rotation', credential: 'default', outcome: 'taken', detail },
  ]);
});

it('belongs to one API: a route of another origin does not inherit it', () => {
  const file = scratchFile(`
upstream: { query: { key: sesame } }
routes:
  - { name: same, pathPrefix: /a }
  - { name: own, pathPrefix: /b, query: { other: sesame } }
  - { name: host, pathPrefix: /c, baseUrl: "https://api.other.example", credential: default }`);
  const loaded = loadConfig({ env: BASE_ENV, file });
  const names = loaded.ok && loaded.config.routes.map(({ upstream }) => Object.keys(upstream.query));
  expect(names).toEqual([['key'], ['key'], ['other'], []]);
  expect(JSON.stringify(renderConfig({ env: BASE_ENV, file }))).not.toContain('sesame');
});

it.each([
  ['{"a":"x","A":"y"}', /"a": is there twice/],
  ['{"":"x"}', /expected the name of a parameter/],
  ['{"a":"x\\ny"}', /must not hold control characters/],
  ['{"a":"\\ud800"}', /must be Unicode text/],
])('the parameters %s are refused', (map, fault) => {
  expect(problemsOf({ SIDECAR_UPSTREAM_QUERY: map })).toEqual([expect.stringMatching(fault)]);
});
