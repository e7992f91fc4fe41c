/** The token request on the wire, and good and bad responses to it. */
import type { Socket } from 'node:net';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { joinUrl } from '../../../src/config/schema/formats/url.ts';
import { describeConnectionFault } from '../../../src/token/endpoint/single-request.ts';
import type { TokenEndpointOptions } from '../../../src/token/endpoint/token-endpoint.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import { waitUntil } from '../../support/until.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { askOnce, buildEndpoint, SECRET, valuesOf } from './endpoint.ts';
import { RawServer } from './raw-server.ts';

const BASIC = Buffer.from(`client-1:${SECRET}`).toString('base64');
const GRANT = '{"access_token":"t0ken","token_type":"Bearer","expires_in":3600,"scope":""}';

/** Typed: vitest returns `any`. */
const containing = (text: string): unknown => expect.stringContaining(text);

let server: RawServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function serve(respond: (socket: Socket) => void): Promise<RawServer> {
  await server?.close();
  server = await RawServer.listen(respond);
  return server;
}

function respondWith(status: string, body: string | Buffer, fields: readonly string[] = []): (socket: Socket) => void {
  const head = [`HTTP/1.1 ${status}`, `Content-Length: ${String(Buffer.byteLength(body))}`, ...fields].join('\r\n');
  return (socket) => socket.write(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), Buffer.from(body)]));
}

function ask(tokenUrl: URL, options?: Partial<TokenEndpointOptions>): Promise<TokenRequestResult> {
  return askOnce(buildEndpoint(tokenUrl, options));
}

/** One request to a server that responds with these bytes. */
async function askFor(status: string, body: string | Buffer, fields?: readonly string[]): Promise<TokenRequestResult> {
  const { url } = await serve(respondWith(status, body, fields));
  return ask(url);
}

describe('the request', () => {
  test('has raw id:secret in Basic and a form without charset, byte for byte', async () => {
    const { url, requests } = await serve(respondWith('200 OK', GRANT));
    expect(await ask(url)).toEqual({ kind: 'ok', value: 't0ken', lifetimeMs: 3_600_000, scope: undefined });
    expect(requests).toEqual([
      'POST /oauth/token HTTP/1.1\r\n' +
        `host: ${url.host}\r\n` +
        'connection: close\r\n' +
        `Authorization: Basic ${BASIC}\r\n` +
        'Content-Type: application/x-www-form-urlencoded\r\n' +
        'Accept: application/json\r\n' +
        'User-Agent: test-agent/1\r\n' +
        'content-length: 64\r\n' +
        '\r\n' +
        'grant_type=client_credentials&audience=https%3A%2F%2Fapi.test%2F',
    ]);
  });

  test.each<[Partial<TokenEndpointOptions>, string]>([
    [{ audience: ['https://a.test/x y'] }, 'audience=https%3A%2F%2Fa.test%2Fx+y'],
    [{ audience: [], scope: 'urn:v.write urn:v.read' }, 'scope=urn%3Av.write+urn%3Av.read'],
    [{ audience: ['a'], scope: 'b' }, 'audience=a&scope=b'],
    [{ audience: ['b', 'a'] }, 'audience=b&audience=a'],
    [{ audience: [], resource: ['urn:r', 'https://r.test/'] }, 'resource=urn%3Ar&resource=https%3A%2F%2Fr.test%2F'],
    [
      { audience: ['a'], scope: 's', resource: ['urn:r'], extraParameters: valuesOf({ tenant: 'ü&=', b: '1' }) },
      'audience=a&scope=s&resource=urn%3Ar&tenant=%C3%BC%26%3D&b=1',
    ],
  ])('for %j has its form fields', async (options, form) => {
    const { url, requests } = await serve(respondWith('200 OK', GRANT));
    await ask(url, options);
    expect(requests[0]?.split('\r\n\r\n')[1]).toBe(`grant_type=client_credentials&${form}`);
  });

  test('has the configured extra headers beside its own', async () => {
    const { url, requests } = await serve(respondWith('200 OK', GRANT));
    await ask(url, { extraHeaders: valuesOf({ 'X-Api-Key': 'sesame-1' }) });
    expect(requests[0]).toContain('\r\nX-Api-Key: sesame-1\r\n');
    expect(requests[0]).toContain(`\r\nAuthorization: Basic ${BASIC}\r\n`);
  });

  test('has exactly one User-Agent: that of the extra headers, if there is one', async () => {
    const { url, requests } = await serve(respondWith('200 OK', GRANT));
    await ask(url, { extraHeaders: valuesOf({ 'user-agent': 'billing/1' }) });
    expect(requests[0]?.match(/user-agent: .*/gi)).toEqual(['user-agent: billing/1']);
  });

  test('has the query of the token URL as it is', async () => {
    const { url, requests } = await serve(respondWith('200 OK', GRANT));
    await ask(joinUrl(url.origin, '/oauth/token?grant=x&b=%zz+1/?&&c'));
    expect(requests[0]).toMatch(/^POST \/oauth\/token\?grant=x&b=%zz\+1\/\?&&c HTTP\/1.1\r\n/);
  });

  test('uses a changed secret file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'token-endpoint-'));
    const path = join(folder, 'secret');
    const { url, requests } = await serve(respondWith('200 OK', GRANT));
    const secret = { kind: 'file', path } as const;
    const endpoint = buildEndpoint(url, { method: { name: 'client_secret_basic', secret, encoding: 'raw' } });
    expect(await askOnce(endpoint)).toMatchObject({ kind: 'unavailable', detail: containing(path) });
    const versions = new Set<string>();
    for (const written of ['first', 'second']) {
      await writeFile(path, `${written}\n`);
      expect(await askOnce(endpoint)).toMatchObject({ kind: 'ok' });
      for (const reading of [await endpoint.readCredential(), await endpoint.readCredential()])
        versions.add(reading.kind === 'ready' ? reading.version : 'none');
    }
    await rm(folder, { recursive: true });
    expect(versions.size).toBe(2);
    const sent = requests.map((text) => /Basic (\S+)/.exec(text)?.[1] ?? '');
    expect(sent.map((basic) => Buffer.from(basic, 'base64').toString())).toEqual(['client-1:first', 'client-1:second']);
  });

  test('can use a credential that was read before', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'token-endpoint-'));
    const path = join(folder, 'secret');
    await writeFile(path, 'first');
    const { url, requests } = await serve(respondWith('200 OK', GRANT));
    const secret = { kind: 'file', path } as const;
    const endpoint = buildEndpoint(url, { method: { name: 'client_secret_basic', secret, encoding: 'raw' } });
    const older = await endpoint.readCredential();
    await rm(folder, { recursive: true });
    if (older.kind === 'ready') await endpoint.request(older, new AbortController().signal);
    expect(requests[0]).toContain(`Basic ${Buffer.from('client-1:first').toString('base64')}\r\n`);
  });

  test('is not sent with an id that holds a colon', async () => {
    const { url, requests } = await serve(respondWith('200 OK', GRANT));
    const refused = await ask(url, { clientId: { kind: 'value', value: 'a:b' } });
    expect(refused).toMatchObject({ kind: 'unavailable', detail: containing('auth.clientId') });
    expect(requests).toEqual([]);
  });
});

describe('a rejection', () => {
  test.each(['400 Bad Request', '401 Unauthorized', '403 Forbidden'])('is %s with an OAuth error', async (status) => {
    const challenge = ['WWW-Authenticate: Basic realm="as"', 'Content-Type: application/json'];
    const refused = await askFor(status, '{"error":"invalid_client","error_description":"x"}', challenge);
    expect(refused).toMatchObject({ kind: 'rejected', detail: containing('"invalid_client"') });
  });

  test('by 404 names the settings to check', async () => {
    const refused = await askFor('404 Not Found', '');
    expect(refused).toMatchObject({ kind: 'rejected', detail: containing('auth.tokenPath') });
  });

  test('by 404 for a path that is there twice names what to set', async () => {
    const { url } = await serve(respondWith('404 Not Found', ''));
    const doubled = new URL('/oauth/token/oauth/token?key=sesame', url);
    const refused = await ask(doubled);
    const expected = `set auth.url to ${url.origin} and auth.tokenPath to /oauth/token?key=********, there is no token endpoint at /oauth/token/oauth/token?key=********`;
    expect(refused).toMatchObject({ kind: 'rejected', detail: containing(expected) });
  });

  test('that echoes secrets does not show them', async () => {
    const refused = await askFor('401 Unauthorized', JSON.stringify({ error: `bad ${SECRET} in ${BASIC}` }));
    expect(refused).toMatchObject({ kind: 'rejected', detail: containing('"bad ******** in ********"') });
    const { url } = await serve(respondWith('400 Bad Request', '{"error":"bad sesame-1 and sesame-2 of client-1"}'));
    const extras = {
      extraParameters: valuesOf({ key: 'sesame-1', short: 'bad' }),
      extraHeaders: valuesOf({ 'x-key': 'sesame-2' }),
    };
    expect(await ask(url, extras)).toMatchObject({ detail: containing('"bad ******** and ******** of ********"') });
  });
});

describe('the words of the server', () => {
  const entra = {
    error: 'invalid_client',
    error_description:
      'AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 11111111-2222\r\nTimestamp: 2026-11-01',
    error_codes: [7000215],
    trace_id: '11111111-2222',
    correlation_id: '33333333-4444',
  };
  const okta = { errorCode: 'E0000015', errorSummary: 'Invalid "client"', errorId: 'oae-1' };
  const basic = 'WWW-Authenticate: Basic realm="error=\\"no\\"", error="invalid_client", error_description="who?"';

  test.each<[string, string, readonly string[], object]>([
    [
      '401 Unauthorized',
      JSON.stringify(entra),
      [],
      {
        kind: 'rejected',
        error: 'invalid_client',
        detail: containing(
          'answered the token request with 401 and the error "invalid_client": AADSTS7000215: Invalid client secret provided. ' +
            'Trace ID: 11111111-2222 Timestamp: 2026-11-01 (correlation_id 33333333-4444)',
        ),
      },
    ],
    [
      '403 Forbidden',
      JSON.stringify(okta),
      [],
      { kind: 'rejected', error: 'E0000015', detail: containing('"E0000015": Invalid client (errorId oae-1)') },
    ],
    ['429 Too Many', '{"errorCode":"E0000047","errorSummary":"API limit"}', [], { kind: 'unavailable' }],
    [
      '401 Unauthorized',
      '',
      [basic],
      { kind: 'rejected', detail: containing('with 401 and the error "invalid_client": who?') },
    ],
    [
      '401 Unauthorized',
      '{"error":"slow_down"}',
      [basic, 'Retry-After: 3'],
      { kind: 'unavailable', retryAfterMs: 3000 },
    ],
    ['400 Bad Request', '{"error":"slow_down"}', ['Retry-After: 3'], { kind: 'unavailable', retryAfterMs: 3000 }],
    ['400 Bad Request', '{"error":"temporarily_unavailable"}', [], { kind: 'unavailable' }],
    ['403 Forbidden', '{"error":"server_error"}', [], { kind: 'unavailable', detail: containing('"server_error"') }],
    ['403 Forbidden', '{"error":"Slow_down"}', [], { kind: 'rejected' }],
    ['400 Bad Request', '{"error":{"code":1}}', ['Retry-After: 7'], { kind: 'unavailable', retryAfterMs: 7000 }],
    [
      '404 Not Found',
      '{"error":"x","error_description":"no tenant"}',
      [],
      { kind: 'rejected', detail: containing('no tenant: check auth.url') },
    ],
    [
      '503 Unavailable',
      '{"error":"x","error_description":"later"}',
      [],
      { kind: 'unavailable', detail: containing('503 and the error "x": later') },
    ],
    [
      '200 OK',
      '{"error":"bad_code","error_description":"used"}',
      [],
      { kind: 'malformed', detail: containing('no access_token and the error "bad_code": used') },
    ],
  ])('of %s %s', async (status, body, fields, expected) => {
    expect(await askFor(status, body, fields)).toMatchObject(expected);
  });

  test('are bounded, on one line, and never a raw body', async () => {
    const long = `a\u202eb\u0007c\u2028d\n${'é<b>'.repeat(500)}`;
    const body = { error: long, error_description: long, error_codes: Array(999).fill(1), trace_id: long, x: 'raw' };
    const { detail } = (await askFor('400 Bad Request', JSON.stringify(body))) as { readonly detail: string };
    expect(detail).toMatch(/^[\x20-\x7e]{100,600}$/);
    expect(detail).toContain('"abc d');
    expect(detail).not.toContain('raw');
  });

  test('of an outage that never end do not delay the result, nor lose its Retry-After', async () => {
    const { url, received } = await serve((socket) =>
      socket.write('HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 99\r\n\r\n{"err'),
    );
    const clock = new ManualClock();
    const result = ask(url, { clock });
    await received;
    await waitUntil(() => clock.pendingTimers === 2, 'the head has come');
    await clock.advance(1000);
    expect(await result).toMatchObject({ kind: 'unavailable', retryAfterMs: 9000, detail: containing('with 503') });
  });
});

describe('a refusal in the words of the server alone', () => {
  const unexplained = (words: string) => ({
    kind: 'rejected',
    isUnexplained: true,
    detail: containing(`answered the token request with 401 and no OAuth error${words}`),
  });

  test.each<[string, string, string]>([
    ['nothing', '', ''],
    ['a page', '<html>sesame</html>', ''],
    ['JSON that is no object', '"no"', ''],
    ['Apigee', '{"fault":{"faultstring":"Invalid client identifier","detail":{"errorcode":"x"}}}', ': Invalid client'],
    [
      'Apigee, another policy',
      '{"ErrorCode":"invalid_client","Error":"Client credentials are invalid"}',
      ': Client cred',
    ],
    [
      'WSO2',
      '{"fault":{"code":900901,"message":"Invalid Credentials","description":"Access failure"}}',
      ': Access failure',
    ],
    ['Mule', '{"error":{"message":"no such client"}}', ': no such client'],
    ['problem details', '{"type":"about:blank","title":"Unauthorized","detail":"wrong key"}', ': wrong key'],
    ['a title alone', '{"title":"Unauthorized"}', ': Unauthorized'],
    ['a message', '{"message":"Unauthorized"}', ': Unauthorized'],
    ['a message that is no text', '{"message":{"a":1}}', ''],
  ])('is a 401 with %s', async (_name, body, words) => {
    expect(await askFor('401 Unauthorized', body)).toEqual(unexplained(words));
  });

  test('does not hide the OAuth error of a challenge', async () => {
    const challenge = 'WWW-Authenticate: Bearer error="invalid_client"';
    const result = await askFor('401 Unauthorized', '{"message":"who are you"}', [challenge]);
    expect(result).toMatchObject({ kind: 'rejected', error: 'invalid_client', detail: containing(': who are you') });
    expect(result).not.toHaveProperty('isUnexplained');
  });

  test('is a 401 whose body is cut, too long or in an unknown coding', async () => {
    const { url } = await serve((socket) => socket.end('HTTP/1.1 401 No\r\nContent-Length: 99\r\n\r\n{"err'));
    expect(await ask(url)).toEqual(unexplained(''));
    expect(await askFor('401 No', 'a'.repeat(70_000))).toMatchObject({ kind: 'rejected', isUnexplained: true });
    const coded = await askFor('401 No', 'abc', ['Content-Encoding: br']);
    expect(coded).toMatchObject({
      kind: 'rejected',
      detail: containing('Content-Encoding is neither gzip nor deflate'),
    });
  });

  test('does not show what was sent', async () => {
    const { url } = await serve(respondWith('401 No', JSON.stringify({ message: `no ${SECRET} of client-1` })));
    expect(await ask(url)).toEqual(unexplained(': no ******** of ********'));
  });
});

describe('a compressed response', () => {
  const gzip = ['Content-Encoding: gzip'];
  const tooLong = `{"access_token":"t0ken","pad":"${'a'.repeat(70_000)}"}`;

  test.each<[string, Buffer, string]>([
    ['gzip', gzipSync(GRANT), 'gzip'],
    ['x-gzip', gzipSync(GRANT), 'X-GZip'],
    ['deflate', deflateSync(GRANT), 'deflate'],
    ['identity', Buffer.from(GRANT), 'identity'],
  ])('is read: %s', async (_name, body, coding) => {
    expect(await askFor('200 OK', body, [`Content-Encoding: ${coding}`])).toMatchObject({ kind: 'ok', value: 't0ken' });
  });

  test('shows the words of a refusal', async () => {
    const body = gzipSync('{"error":"invalid_client","error_description":"who?"}');
    expect(await askFor('401 No', body, gzip)).toMatchObject({
      kind: 'rejected',
      detail: containing('"invalid_client": who?'),
    });
    expect(await askFor('503 Busy', gzipSync('{"message":"later"}'), gzip)).toMatchObject({
      detail: containing('503: later'),
    });
    expect(await askFor('503 Busy', Buffer.from('abc'), gzip)).toMatchObject({
      kind: 'unavailable',
      detail: containing('damaged'),
    });
  });

  test.each<[string, Buffer, readonly string[], string]>([
    ['cut', gzipSync(GRANT).subarray(0, -9), gzip, 'a compressed body that is damaged'],
    ['changed', Buffer.from(gzipSync(GRANT)).fill(0, 20, 30), gzip, 'a compressed body that is damaged'],
    ['not compressed at all', Buffer.from(GRANT), gzip, 'a compressed body that is damaged'],
    ['in another coding', brotliCompressSync(GRANT), ['Content-Encoding: br'], 'is neither gzip nor deflate'],
    ['compressed twice', gzipSync(gzipSync(GRANT)), ['Content-Encoding: gzip, gzip'], 'is neither gzip nor deflate'],
    ['too long', gzipSync(tooLong), gzip, 'with 200 and more than 64 KiB'],
    ['a bomb', gzipSync(Buffer.alloc(60_000_000)), gzip, 'with 200 and more than 64 KiB'],
  ])('that is %s is malformed', async (_name, body, fields, words) => {
    const result = await askFor('200 OK', body, fields);
    expect(result).toMatchObject({ kind: 'malformed', detail: containing(words) });
    expect(JSON.stringify(result)).not.toContain('t0ken');
  });

  test('of any bytes is a result, never an exception', async () => {
    const body = fc
      .uint8Array({ maxLength: 200 })
      .map((bytes) => Buffer.concat([gzipSync(GRANT).subarray(0, 10), bytes]));
    const { url } = await serve((socket) => respondWith('200 OK', bytes, gzip)(socket));
    let bytes = Buffer.alloc(0);
    await fc.assert(
      fc.asyncProperty(body, async (drawn) => {
        bytes = drawn;
        expect((await ask(url)).kind).toBe('malformed');
      }),
      { numRuns: 50 },
    );
  });
});

describe('no usable token', () => {
  test.each([
    ['400 Bad Request', '<html>t0ken</html>'],
    ['403 Forbidden', `{"error":"x","pad":"${'a'.repeat(70_000)}"}`],
    ['500 Internal Server Error', '{"error":"server_error"}'],
    ['502 Bad Gateway', 'a'.repeat(1_000_000)],
    ['204 No Content', ''],
    ['202 Accepted', GRANT],
  ])('%s is unavailable', async (status, body) => {
    const refused = await askFor(status, body);
    expect(refused).toMatchObject({ kind: 'unavailable', detail: containing(status.slice(0, 3)) });
    expect(JSON.stringify(refused)).not.toMatch(/t0ken|aaaa/);
  });

  test('a redirect is not followed', async () => {
    const { url, requests } = await serve(respondWith('307 Temporary Redirect', '', ['Location: /elsewhere']));
    expect(await ask(url)).toMatchObject({
      kind: 'unavailable',
      detail: containing('redirects are not followed'),
    });
    expect(requests).toHaveLength(1);
  });

  test.each([
    ['429 Too Many Requests', '17', 17_000],
    ['503 Service Unavailable', new Date(new ManualClock().wallNow() + 42_000).toUTCString(), 42_000],
  ])('%s with Retry-After: %s', async (status, field, retryAfterMs) => {
    expect(await askFor(status, '', [`Retry-After: ${field}`])).toMatchObject({ kind: 'unavailable', retryAfterMs });
  });

  const at = (seconds: number) => new Date(new ManualClock().wallNow() + seconds * 1000).toUTCString();
  const inSeconds = (seconds: number) => String(Math.floor(new ManualClock().wallNow() / 1000) + seconds);
  test.each<[string, readonly string[], number | undefined]>([
    [
      '429 Too Many',
      ['X-RateLimit-Limit: 10', 'X-RateLimit-Remaining: 0', `X-RateLimit-Reset: ${inSeconds(42)}`],
      42_000,
    ],
    ['429 Too Many', ['RateLimit: "default";r=0;t=7'], 7_000],
    ['503 Unavailable', ['RateLimit-Reset: 7'], 7_000],
    ['429 Too Many', ['Retry-After: 3', 'X-RateLimit-Reset: 7'], 3_000],
    ['503 Unavailable', ['X-RateLimit-Remaining: 99', 'X-RateLimit-Reset: 7'], undefined],
    ['500 Fault', ['X-RateLimit-Reset: 7'], undefined],
    ['429 Too Many', [`X-RateLimit-Reset: ${'7'.repeat(2000)}`], undefined],
    ['429 Too Many', [], undefined],
    ['202 Accepted', [], undefined],
    ['204 No Content', ['Retry-After: 3'], 3_000],
  ])('%s with %j', async (status, fields, retryAfterMs) => {
    const result = await askFor(status, '', fields);
    expect(result.kind).toBe('unavailable');
    const isLasting = status.startsWith('2') || (status.startsWith('429') && retryAfterMs === undefined);
    expect('isLasting' in result).toBe(isLasting);
    expect('retryAfterMs' in result ? result.retryAfterMs : undefined).toBe(retryAfterMs);
  });

  test('a wait is as long as was meant, by the clock of the server and after its time in a cache', async () => {
    const date = `Date: ${at(3600)}`;
    const later = at(3642);
    const waits = [
      [date, `Retry-After: ${later}`],
      [date, 'Age: 20', `Retry-After: ${later}`],
      [date, 'X-RateLimit-Remaining: 0', `X-RateLimit-Reset: ${inSeconds(3642)}`],
      ['Age: 20', 'Retry-After: 42'],
      [`Retry-After: ${inSeconds(42)}`],
    ];
    const results = await Promise.all(waits.map((fields) => askFor('429 Too Many', '', fields)));
    expect(results.map((result) => 'retryAfterMs' in result && result.retryAfterMs)).toEqual(
      [42, 22, 42, 22, 42].map((seconds) => seconds * 1000),
    );
  });

  test.each([
    ['HTML', '<html>t0ken</html>', []],
    ['a body without bound', `{"access_token":"t0ken","pad":"${'a'.repeat(10_000_000)}"}`, []],
  ])('a 200 with %s is malformed', async (_name, body, fields) => {
    const refused = await askFor('200 OK', body, fields);
    expect(refused.kind).toBe('malformed');
    expect(JSON.stringify(refused)).not.toContain('t0ken');
  });

  test.each<[string, (socket: Socket) => void, string]>([
    ['a reset', (socket) => socket.resetAndDestroy(), 'cut the connection (ECONNRESET)'],
    ['a close', (socket) => socket.end(), 'closed the connection before its response was complete'],
    [
      'half a body',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"acc'),
      'closed the connection',
    ],
    ['no HTTP', (socket) => socket.end('SSH-2.0-t0ken\r\n'), 'does not speak HTTP'],
  ])('%s is unavailable', async (_name, respond, words) => {
    const { url } = await serve(respond);
    expect(await ask(url)).toEqual({ kind: 'unavailable', detail: containing(`${url.host} `) });
    const { url: again } = await serve(respond);
    expect(await ask(again)).toMatchObject({ detail: containing(words) });
  });

  test('a closed port is unavailable', async () => {
    const { url } = await serve(() => undefined);
    await server?.close();
    server = undefined;
    expect(await ask(url)).toEqual({
      kind: 'unavailable',
      detail: containing(`${url.host} refused the connection (ECONNREFUSED); nothing listens there`),
    });
  });

  test.each(['EACCES', 'ENOENT', 'EPERM'])(
    '%s, as of a security policy, is not said to be of a socket file',
    (code) => {
      const error = Object.assign(new Error(`connect ${code}`), { code });
      expect(describeConnectionFault('auth.test', error)).toMatch(`auth.test cannot be reached (${code}); check host`);
    },
  );
});

describe('time', () => {
  test.each<[string, (socket: Socket) => void]>([
    ['never responds', () => undefined],
    ['stalls in its head', (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-')],
    ['stalls in its body', (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"acc')],
  ])('a server that %s is given timeoutMs', async (_name, respond) => {
    const { url, received } = await serve(respond);
    const clock = new ManualClock();
    const result = ask(url, { clock, timeoutMs: 700 });
    await received;
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(700);
    expect(await result).toEqual({
      kind: 'unavailable',
      detail: `${url.host} sent no complete response within 700 ms: auth.timeoutMs (SIDECAR_AUTH_TIMEOUT_MS)`,
    });
  });

  test('an abort ends it and closes the connection', async () => {
    const { url, received, sockets } = await serve(() => undefined);
    const clock = new ManualClock();
    const leaver = new AbortController();
    const result = askOnce(buildEndpoint(url, { clock }), leaver.signal);
    await received;
    const closed = [...sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    leaver.abort();
    expect(await result).toMatchObject({ kind: 'unavailable', detail: containing('abandoned') });
    await Promise.all(closed);
    expect(clock.pendingTimers).toBe(0);
  });

  test('an abort closes a connection whose TLS is still being opened', async () => {
    const { url, connected } = await serve(() => undefined);
    const leaver = new AbortController();
    const endpoint = buildEndpoint(new URL(url.href.replace('http:', 'https:')), { timeoutMs: 600_000 });
    const result = askOnce(endpoint, leaver.signal);
    const socket = await connected;
    const closed = new Promise((resolve) => socket.once('close', resolve));
    leaver.abort();
    expect(await result).toMatchObject({ kind: 'unavailable', detail: containing('abandoned') });
    await closed;
  });
});
