/** What the upstream receives of the token and of the fixed header fields of a route, and when a file with a value changes. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secrets } from '../../src/platform/secrets.ts';
import { RouteHeaders } from '../../src/composition/route-headers.ts';
import { configOf, scratchDirectory, scratchFile } from '../config/base-env.ts';
import { canonicalize, spellings } from '../support/field-spellings.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';
import { startInProcess, until } from './in-process.ts';
import type { InProcess } from './in-process.ts';
import { startRawUpstream } from './raw-upstream.ts';
import type { RespondRaw } from './raw-upstream.ts';
import { send } from './send.ts';

const TOKEN = 'token-1-of-the-tests';

type Field = readonly [name: string, value: string];

interface Shape {
  readonly title: string;
  /** Of `upstream`, for a configuration file. */
  readonly settings: object;
  /** What each attempt has exactly once. */
  readonly own: readonly Field[];
}

function shape(title: string, tokenHeader: string, tokenPrefix: string, fixed: readonly Field[]): Shape {
  const settings = { tokenHeader, tokenPrefix, headers: Object.fromEntries(fixed) };
  return { title, settings, own: [[tokenHeader, tokenPrefix + TOKEN], ...fixed] };
}

const SHAPES: readonly Shape[] = [
  shape('a bearer token', 'Authorization', 'Bearer ', []),
  shape('a bearer token and fixed fields', 'Authorization', 'Bearer ', [
    ['X-Api-Key', 'own key: 1, "two"'],
    ['x_tenant', 'own-tenant'],
    ['Content-Type', 'application/vnd.api+json'],
    ['Accept', 'application/vnd.api+json'],
  ]),
  shape('a token without a prefix in another field, and a fixed Authorization', 'X-Auth_Token', '', [
    ['Authorization', 'Basic b3duOmtleQ=='],
  ]),
  shape('a token in a cookie', 'Cookie', 'session=', [['User-Agent', 'own/1.0 (of the route)']]),
];

const ORDINARY = ['X-Other', 'x_under', 'Accept-Language', 'X-Api-Keys', 'Authorization-Info'];

function isOrdinary(name: string): boolean {
  return ORDINARY.some((ordinary) => canonicalize(ordinary) === canonicalize(name));
}

interface ClientRequest {
  readonly version: '1.0' | '1.1';
  readonly method: 'GET' | 'POST';
  readonly fields: readonly Field[];
}

/** Fields of every reserved name, repeated, among ordinary ones; `Connection` names some of both. */
function clientRequests(own: readonly Field[]): fc.Arbitrary<ClientRequest> {
  const reserved = [...new Set([...own.map(([name]) => name), 'Authorization'])];
  const name = fc.constantFrom(...reserved, ...reserved, ...ORDINARY).chain(spellings);
  const field = fc.tuple(name, fc.constantFrom('client-a', 'client-b=1; client-c', '', 'Bearer client-d'));
  const nomination = fc.tuple(
    fc.constant('Connection'),
    fc.array(name, { maxLength: 3 }).map((names) => ['close', ...names].join(', ')),
  );
  return fc.record({
    version: fc.constantFrom('1.0', '1.1'),
    method: fc.constantFrom('GET', 'POST'),
    fields: fc.array(fc.oneof({ weight: 6, arbitrary: field }, nomination), { maxLength: 12 }),
  });
}

function format({ version, method, fields }: ClientRequest, path: string): string {
  // The line end lets the upstream find the next head.
  const body = method === 'POST' ? '{}\r\n' : '';
  const length = method === 'POST' ? ['Content-Length: 4'] : [];
  const lines = [`${method} ${path} HTTP/${version}`, 'Host: 127.0.0.1', ...length];
  return [...lines, ...fields.map((field) => field.join(': ')), 'Connection: close', '', body].join('\r\n');
}

/** The fields of a head, which may begin with the rest of an earlier body. */
function parseHead(head: string): Field[] {
  const lines = head.split('\r\n');
  const first = lines.findIndex((line) => line.endsWith(' HTTP/1.1'));
  return lines.slice(first + 1).map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
}

function expectOwnFields(head: string, own: readonly Field[], fields: readonly Field[]): void {
  const received = parseHead(head);
  const reserved = new Set([...own.map(([name]) => canonicalize(name)), 'authorization']);
  const ofReservedName = received.filter(([name]) => reserved.has(canonicalize(name)));
  const sorted = (list: readonly Field[]) => list.map(([name, value]) => `${name.toLowerCase()}: ${value}`).toSorted();
  expect(sorted(ofReservedName)).toEqual(sorted(own));
  const nominated = fields.flatMap(([name, value]) => (name === 'Connection' ? value.split(', ') : []));
  const dropped = new Set([...reserved, ...nominated.map(canonicalize), 'connection']);
  const kept = fields.filter(([name]) => !dropped.has(canonicalize(name)));
  const ordinary = received.filter(([name]) => isOrdinary(name));
  expect(sorted(ordinary)).toEqual(sorted(kept));
}

/** Each path is refused with 429 once. */
function refuseOnce(heads: string[]): RespondRaw {
  const seen = new Set<string>();
  return (socket, _, head) => {
    heads.push(head);
    const path = / (\S+) HTTP\/1\.1/.exec(head)?.[1] ?? '';
    const status = seen.has(path) ? '200 OK' : '429 Too Many Requests';
    seen.add(path);
    socket.write(`HTTP/1.1 ${status}\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n`);
  };
}

function envOf(upstream: object): Record<string, string> {
  return { SIDECAR_CONFIG: scratchFile(JSON.stringify({ upstream })) };
}

describe.each(SHAPES)('$title', ({ settings, own }) => {
  it('invariant 1: is in each attempt once, and the client’s own fields of these names are not', async () => {
    const heads: string[] = [];
    const upstream = await startRawUpstream(refuseOnce(heads));
    const sidecar = await startInProcess({ apiUrl: upstream.url, env: envOf(settings) });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(clientRequests(own), async (request) => {
        heads.length = 0;
        run += 1;
        const reply = await sendRaw(sidecar.url, format(request, `/${String(run)}`));
        expect(reply.status).toBe(200);
        expect(heads).toHaveLength(2);
        const usual = own.some(([name]) => name === 'Content-Type')
          ? []
          : ([['Content-Type', 'application/json']] as const);
        for (const head of heads) {
          expectOwnFields(head, own, request.fields);
          const types = parseHead(head).filter(([name]) => canonicalize(name) === 'content-type');
          if (request.method === 'POST' && usual.length > 0) expect(types).toEqual(usual);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('invariant 1: is in a WebSocket handshake once, and the client’s own fields of these names are not', async () => {
    const heads: string[] = [];
    const upstream = await startRawUpstream((socket, _, head) => {
      heads.push(head);
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    });
    const sidecar = await startInProcess({ apiUrl: upstream.url, env: envOf({ ...settings, websocket: true }) });
    await fc.assert(
      fc.asyncProperty(clientRequests(own), async ({ fields }) => {
        heads.length = 0;
        // http-proxy-3 joins repeated fields into one.
        const isFirst = (name: string, at: number) =>
          fields.findIndex(([other]) => canonicalize(other) === canonicalize(name)) === at;
        const once = fields.filter(([name], at) => isFirst(name, at) || !isOrdinary(name));
        const socket = await openSocket(sidecar.url);
        const reply = readToEnd(socket);
        const lines = once.map((field) => `${field.join(': ')}\r\n`).join('');
        socket.write(
          `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${lines}` +
            'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
        );
        expect((await reply).status).toBe(403);
        expect(heads).toHaveLength(1);
        expectOwnFields(heads[0] ?? '', own, once);
      }),
      { numRuns: 20 },
    );
  });
});

describe('the field that admits clients', () => {
  it('may have the name of a fixed field: each side gets its own value', async () => {
    const env = {
      SIDECAR_UPSTREAM_HEADERS: '{"X_Api_Key":"for the partner"}',
      SIDECAR_LISTEN_REQUIRED_HEADER_NAME: 'X-Api-Key',
      SIDECAR_LISTEN_REQUIRED_HEADER_VALUE: 'for the sidecar',
    };
    const sidecar = await startInProcess({ env });
    expect((await send(sidecar.url)).status).toBe(403);
    expect((await send(sidecar.url, { headers: { 'x-api-key': 'for the partner' } })).status).toBe(403);
    expect((await send(sidecar.url, { headers: { 'x-api-key': 'for the sidecar' } })).status).toBe(200);
    expect(sidecar.api.requests.map(({ rawHeaders }) => rawHeaders.join('|'))).toEqual([
      expect.not.stringContaining('for the sidecar'),
    ]);
    expect(sidecar.api.requests[0]?.headers).toMatchObject({ x_api_key: 'for the partner' });
  });
});

describe('a value in a file', () => {
  async function start(contents: string, more: Record<string, string> = {}) {
    const path = join(scratchDirectory(), 'key');
    await writeFile(path, contents);
    const clock = new ManualClock();
    const file = scratchFile('routes: [{ name: other, pathPrefix: /other }]');
    const headers = JSON.stringify({ 'X-Api-Key': { file: path } });
    const env = { ...more, SIDECAR_CONFIG: file, SIDECAR_UPSTREAM_HEADERS: headers };
    return { path, clock, sidecar: await startInProcess({ clock, env }) };
  }

  /** Of one call of each route. */
  async function keysOfCalls({ url, api }: InProcess): Promise<unknown[]> {
    const calls = [await send(url), await send(`${url}/other`)];
    expect(calls.map(({ status }) => status)).toEqual([200, 200]);
    return api.requests.slice(-2).map(({ headers }) => headers['x-api-key']);
  }

  async function readFault({ sidecar }: InProcess) {
    const text = await (await fetch(`${sidecar.adminUrl}/status`)).text();
    const { tokens, degraded } = JSON.parse(text) as {
      tokens: readonly { credentialFault: { detail: string } | null }[];
      degraded: readonly string[];
    };
    return { detail: tokens[0]?.credentialFault?.detail, degraded: degraded.join('\n') };
  }

  it('is used from the next call on when it has changed, two seconds later at most', async () => {
    const { path, clock, sidecar } = await start('first-key-in-use\n');
    expect(await keysOfCalls(sidecar)).toEqual(['first-key-in-use', 'first-key-in-use']);
    await writeFile(path, 'second-key-in-use');
    await clock.advance(2000);
    await until(
      async () => (await keysOfCalls(sidecar)).every((key) => key === 'second-key-in-use'),
      'both routes have the new value',
    );
    expect(sidecar.eventsOf('credential-rotation')).toEqual([
      { kind: 'credential-rotation', credential: 'default', outcome: 'taken', detail: 'upstream.headers X-Api-Key' },
    ]);
  });

  it.each([
    ['missing', undefined, 'does not exist'],
    ['empty', '\n', 'is empty'],
    ['with a line end within', 'two\nlines-of-it', 'must not hold control characters'],
    ['with what a header field cannot carry', 'schlüssel-of-it', 'must be printable ASCII'],
  ])('stays in use while the file is %s, with one warning', async (_, contents, fault) => {
    const { path, clock, sidecar } = await start('first-key-in-use');
    await (contents === undefined ? rm(path) : writeFile(path, contents));
    const faults = () => sidecar.eventsOf('credential-rotation');
    await clock.advance(2000);
    await until(() => faults().length > 0, 'the fault is found');
    for (let poll = 0; poll < 3; poll++) await clock.advance(2000);
    expect(faults()).toMatchObject([{ outcome: 'unreadable', credential: 'default' }]);
    expect(faults()[0]?.detail).toContain(`upstream.headers X-Api-Key: the file ${path} ${fault}`);
    expect(await keysOfCalls(sidecar)).toEqual(['first-key-in-use', 'first-key-in-use']);
    const { detail, degraded } = await readFault(sidecar);
    expect(detail).toContain(fault);
    expect(degraded).toContain(fault);
    await writeFile(path, 'first-key-in-use');
    await until(async () => {
      await clock.advance(2000);
      return (await readFault(sidecar)).detail === undefined;
    }, 'the fault is over');
    expect(faults()).toHaveLength(1);
  });

  it('is masked from eight characters on, but for one of a public field', async () => {
    const inFile = (contents: string) => ({ file: scratchFile(contents) });
    const headers = {
      ...{ 'X-Key': inFile('from-a-file'), 'X-Mode': 'true', 'X-Secret': 'long-enough-for-a-secret' },
      ...{ Accept: 'application/json', 'Content-Language': inFile('de-CH-1996') },
    };
    const config = configOf({ SIDECAR_UPSTREAM_HEADERS: JSON.stringify(headers) });
    const clock = new ManualClock();
    const secrets = new Secrets(clock);
    await new RouteHeaders({ config, secrets, clock, observe: () => undefined }).read();
    const text = 'from-a-file, true, de-CH-1996, long-enough-for-a-secret, long-enough';
    expect(secrets.mask(text)).toBe('********, true, de-CH-1996, ********, long-enough');
  });

  it('shows its fault beside a token in a file too', async () => {
    const token = join(scratchDirectory(), 'token');
    await writeFile(token, 'token-in-a-file');
    const client = { SIDECAR_CLIENT_ID: '', SIDECAR_CLIENT_SECRET: '', SIDECAR_AUTH_URL: '', SIDECAR_AUDIENCE: '' };
    const env = { ...client, SIDECAR_AUTH_METHOD: 'static', SIDECAR_AUTH_TOKEN_FILE: token };
    const { path, clock, sidecar } = await start('first-key-in-use', env);
    await rm(path);
    await until(async () => {
      await clock.advance(2000);
      return (await readFault(sidecar)).detail?.includes('upstream.headers X-Api-Key') === true;
    }, 'the fault is shown');
    expect(sidecar.api.requests).toEqual([]);
    expect(await keysOfCalls(sidecar)).toEqual(['first-key-in-use', 'first-key-in-use']);
  });
});

describe('a route', () => {
  it('invariant 1: inherits the fixed fields of the top level for the same origin only', async () => {
    const usual = await startRawUpstream(respondEmpty);
    const other = await startRawUpstream(respondEmpty);
    const file = scratchFile(`
upstream: { baseUrl: "${usual.url}/v1", headers: { X-Api-Key: of-the-top-level } }
routes:
  - { name: same, pathPrefix: /same, baseUrl: "${usual.url}/v2" }
  - { name: none, pathPrefix: /none }
  - { name: own, pathPrefix: /own, headers: { X-Own: of-the-route } }
  - { name: other, pathPrefix: /other, baseUrl: "${other.url}", credential: default }`);
    const sidecar = await startInProcess({ env: { SIDECAR_BASE_URL: '', SIDECAR_CONFIG: file } });
    for (const path of ['/', '/same', '/none', '/own', '/other']) await send(sidecar.url + path);
    const heads = usual.received.join('').split('\r\n\r\n').slice(0, -1);
    expect(heads.map((head) => head.includes('X-Api-Key: of-the-top-level'))).toEqual([true, true, true, false]);
    expect(heads.map((head) => head.includes('X-Own: of-the-route'))).toEqual([false, false, false, true]);
    expect(other.received.join('')).toMatch(/^GET \/other /);
    expect(other.received.join('')).not.toMatch(/api-key|of-the-top-level/i);
  });

  it('invariant 1: gets its own fixed fields only, for targets in absolute form too', async () => {
    const usual = await startRawUpstream(respondEmpty);
    const other = await startRawUpstream(respondEmpty);
    const file = scratchFile(`
listen: { forwardProxy: true }
upstream: { baseUrl: "${usual.url}", headers: { X-Api-Key: of-the-top-level } }
routes: [{ name: other, pathPrefix: /other, baseUrl: "${other.url}", credential: default, headers: { X-Own: of-the-route } }]`);
    const sidecar = await startInProcess({ env: { SIDECAR_BASE_URL: '', SIDECAR_CONFIG: file } });
    const statuses: number[] = [];
    for (const origin of [sidecar.url, usual.url, other.url])
      for (const path of ['/a', '/other/a', '/other/../a']) {
        const head = `GET ${origin}${path} HTTP/1.1\r\nHost: ${new URL(origin).host}\r\nConnection: close\r\n\r\n`;
        statuses.push((await sendRaw(sidecar.url, head)).status);
      }
    expect(new Set(statuses)).toContain(200);
    expect(usual.received.join('')).not.toMatch(/x-own|of-the-route/i);
    expect(other.received.join('')).not.toMatch(/x-api-key|of-the-top-level/i);
    for (const { received } of [usual, other]) expect(received.join('')).toMatch(/of-the-/);
  });
});

const respondEmpty: RespondRaw = (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
