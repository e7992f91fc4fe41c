/**
 * By which a request is found again: its id, its caller and the upstream's own id. What a client sends is forwarded as it is, and states nothing
 * of the sidecar's replies unless it is valid.
 */
import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createUpgradeHandler } from '../../src/listener/websocket/websocket.ts';
import { selectNoProxy } from '../../src/platform/egress/proxy-selector.ts';
import { ensureRequestId } from '../../src/platform/request-id.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { startInProcess } from '../composition/in-process.ts';
import { send } from '../composition/send.ts';
import { openSocket, readToEnd, sendRaw, type RawResponse } from '../support/raw-client.ts';
import { startRecordingUpstream, type RespondTo } from '../support/recording-upstream.ts';
import { startProxy, type Proxy, type ProxyOptions } from './proxy.ts';

const OWN_ID = /^[a-p]{12}-\d+$/;
const TRACE_ID = 'ab'.repeat(16);
const TRACE_PARENT = `traceparent: 00-${TRACE_ID}-${'cd'.repeat(8)}-01\r\n`;

/** As it is sent: `lines` each with its line end. */
function formatRequest(lines: string, host = '127.0.0.1', start = 'GET /'): Buffer {
  return Buffer.from(`${start} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${lines}\r\n`, 'latin1');
}

/** The id that a local reply states in its field, once, and in its document. */
function readStatedId({ bytes, headers, body }: RawResponse): string {
  const head = bytes.subarray(0, bytes.indexOf('\r\n\r\n')).toString('latin1');
  expect(head.match(/^x-request-id:/gim)).toHaveLength(1);
  const { requestId } = JSON.parse(body.toString()) as { requestId: string };
  expect(headers['x-request-id']).toBe(requestId);
  return requestId;
}

const SPECIAL_VALUES = [
  '',
  'a b',
  'a,b',
  'x'.repeat(128),
  'x'.repeat(129),
  '\xe4',
  'a"b\\',
  '<script>',
  '%0d%0aset-cookie:1',
];
/** Any bytes but control characters, which are refused, and white space around them, which is no part of a value. */
const VALUE = fc
  .oneof(
    fc.constantFrom(...SPECIAL_VALUES),
    fc.string({
      unit: fc.integer({ min: 0x20, max: 0xff }).map((byte) => (byte === 0x7f ? 'A' : String.fromCharCode(byte))),
      maxLength: 140,
    }),
    fc.string({
      unit: fc.constantFrom('a', 'Z', '0', '9', '-', '.', '_', '/', '+', '=', ':', '|'),
      minLength: 1,
      maxLength: 128,
    }),
  )
  .map((value) => value.replace(/^ +| +$/g, ''));
const NAME = fc.constantFrom('x-request-id', 'X-Request-ID', 'X-REQUEST-ID');
const FIELDS = fc.array(fc.tuple(NAME, VALUE), { maxLength: 2 });

function predictId(fields: readonly (readonly [string, string])[], hasTrace: boolean): string | undefined {
  const [first, ...others] = fields.map(([, value]) => value);
  if (first !== undefined && others.length === 0 && /^[!-~]{1,128}$/.test(first)) return first;
  return hasTrace ? TRACE_ID : undefined;
}

describe('the id of a request', () => {
  it('is the client’s valid one, else the trace, else one of the sidecar; the client’s own fields are forwarded as they are', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    await fc.assert(
      fc.asyncProperty(FIELDS, fc.boolean(), async (fields, hasTrace) => {
        const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('') + (hasTrace ? TRACE_PARENT : '');
        const expected = predictId(fields, hasTrace) ?? (expect.stringMatching(OWN_ID) as string);
        const before = proxy.ended().length;
        const relayed = await sendRaw(proxy.url, formatRequest(lines));
        expect(relayed.status).toBe(200);
        expect(relayed.headers).not.toHaveProperty('x-request-id');
        const received = upstream.requests.at(-1)!.rawHeaders;
        const forwarded = received.flatMap((name, at) =>
          /^x-request-id$/i.test(name) && at % 2 === 0 ? [[name, received[at + 1]]] : [],
        );
        expect(forwarded).toEqual(fields.map(([name, value]) => [name, value]));
        const refused = await sendRaw(proxy.url, formatRequest(lines, 'elsewhere.example'));
        expect(refused.status).toBe(403);
        const stated = readStatedId(refused);
        expect(stated).toEqual(expected);
        const [first, second] = (await proxy.requestRecords(before + 2)).slice(before);
        expect(ensureRequestId(first!)).toEqual(expected);
        expect(second!.requestId).toBe(stated);
      }),
      { numRuns: 150 },
    );
  });

  it('is made once, and differs for each request', async () => {
    const { url, sidecar, requestRecords } = await startInProcess();
    for (let count = 0; count < 3; count++) await send(url);
    await requestRecords(3);
    const read = async () => {
      const status = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as {
        recentCalls: { requestId: string }[];
      };
      return status.recentCalls.map(({ requestId }) => requestId);
    };
    const ids = await read();
    expect(new Set(ids).size).toBe(3);
    for (const id of ids) expect(id).toMatch(OWN_ID);
    expect(await read()).toEqual(ids);
    const page = await (await fetch(sidecar.adminUrl)).text();
    for (const id of ids) expect(page).toContain(id);
  });
});

interface Refusal {
  readonly options?: ProxyOptions;
  readonly upstream?: RespondTo;
  /** What the client sends. Default: a GET with an id. */
  readonly bytes?: Buffer;
  readonly prepare?: (proxy: Proxy) => void;
  readonly code: string;
  /** Default: the client's. */
  readonly id?: RegExp;
}

const ID = 'x-request-id: client-1\r\nx-sidecar-caller: billing\r\n';
const WEBSOCKET = `${ID}Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\n`;
const UPGRADE = formatRequest(WEBSOCKET).toString('latin1').replace('Connection: close', 'Connection: upgrade');
const reset: RespondTo = (_, response) => void response.destroy();
const notHttp: RespondTo = (_, response) => void response.socket?.end('SSH-2.0\r\n');
const silent: RespondTo = () => undefined;

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'a foreign Host': { bytes: formatRequest(ID, 'elsewhere.example'), code: 'HOST_NOT_ALLOWED' },
  'a web page': { bytes: formatRequest(`${ID}Origin: http://a.example\r\n`), code: 'ORIGIN_NOT_ALLOWED' },
  'a missing header': {
    options: { guard: { requiredHeader: { name: 'x-key', value: 'sesame' } } },
    code: 'REQUEST_NOT_ALLOWED',
  },
  TRACE: { bytes: formatRequest(ID, '127.0.0.1', 'TRACE /'), code: 'METHOD_NOT_ALLOWED' },
  CONNECT: { bytes: formatRequest(ID, '127.0.0.1', 'CONNECT a.example:443'), code: 'METHOD_NOT_ALLOWED' },
  'an invalid preference': { bytes: formatRequest(`${ID}x-sidecar-priority: urgent\r\n`), code: 'BAD_REQUEST' },
  'a broken body': {
    bytes: formatRequest(`${ID}Transfer-Encoding: chunked\r\n\r\nZZ\r\n`, '127.0.0.1', 'POST /'),
    code: 'BAD_REQUEST',
  },
  'too many requests': { options: { maxRequests: 0 }, code: 'QUEUE_FULL' },
  'a drain': { prepare: ({ server }) => server.stopAccepting(), code: 'DRAINING' },
  'no token': { prepare: ({ tokens }) => tokens.stop(), options: { deadlineMs: 50 }, code: 'TOKEN_UNAVAILABLE' },
  'a reset': { upstream: reset, code: 'UPSTREAM_RESET' },
  'a response that is not HTTP': { upstream: notHttp, code: 'UPSTREAM_PROTOCOL_ERROR' },
  'a time-out': { upstream: silent, options: { requestTimeoutMs: 30 }, code: 'UPSTREAM_TIMEOUT' },
  'an upgrade that is off': { bytes: Buffer.from(UPGRADE), code: 'UPGRADE_NOT_ALLOWED' },
  'an upgrade that breaks': {
    ...{ bytes: Buffer.from(UPGRADE), upstream: reset, code: 'UPSTREAM_RESET' },
    options: {
      serveUpgrade: createUpgradeHandler({
        trust: undefined,
        egress: selectNoProxy,
        connectTimeoutMs: 5000,
        maxHeaderBytes: 65_536,
      }),
    },
  },
  'an invalid request line': { bytes: Buffer.from('what is this\r\n\r\n'), code: 'BAD_REQUEST', id: OWN_ID },
  'an invalid field': { bytes: formatRequest(`${ID}a b: c\r\n`), code: 'BAD_REQUEST', id: OWN_ID },
  'a large head': { bytes: formatRequest(`${ID}a: ${'x'.repeat(20_000)}\r\n`), code: 'HEADERS_TOO_LARGE', id: OWN_ID },
  'a slow head': {
    bytes: Buffer.from('GET / HT'),
    options: { headersTimeoutMs: 100 },
    code: 'REQUEST_TIMEOUT',
    id: OWN_ID,
  },
};

describe('a local reply states the id of its request, which is recorded with it', () => {
  it.each(Object.entries(REFUSALS))(
    'for %s',
    async (_, { upstream: respond, options = {}, prepare, bytes, code, id }) => {
      await using upstream = await startRecordingUpstream(respond);
      await using proxy = await startProxy(upstream.url, options);
      const client = await openSocket(proxy.url);
      const received = readToEnd(client);
      prepare?.(proxy);
      client.write(bytes ?? formatRequest(ID));
      const response = await received;
      expect(JSON.parse(response.body.toString())).toMatchObject({ code });
      const stated = readStatedId(response);
      if (id === undefined) expect(stated).toBe('client-1');
      else expect(stated).toMatch(id);
      expect(await proxy.requestRecords(1)).toMatchObject([
        { localReply: code, requestId: stated, caller: id === undefined ? 'billing' : undefined },
      ]);
    },
  );

  it('for a connection beyond the limit', async () => {
    await using upstream = await startRecordingUpstream(silent);
    await using proxy = await startProxy(upstream.url, { maxConnections: 1 });
    const first = await openSocket(proxy.url);
    first.on('error', () => undefined).write(formatRequest(ID));
    await expect.poll(() => upstream.server.listening && proxy.server.activeRequests.count).toBe(1);
    const response = await readToEnd(await openSocket(proxy.url));
    const stated = readStatedId(response);
    expect(stated).toMatch(OWN_ID);
    expect(proxy.ended()).toMatchObject([{ localReply: 'QUEUE_FULL', requestId: stated }]);
    first.destroy();
  });

  it('for HTTP/2, as a field of its own', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const request = Buffer.from([0, 0, 1, 1, 5, 0, 0, 0, 1, 0x82]);
    const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    const text = (await sendRaw(proxy.url, Buffer.concat([preface, request]))).bytes.toString('latin1');
    const [{ requestId = '' } = {}] = await proxy.requestRecords(1);
    expect(requestId).toMatch(OWN_ID);
    expect(text).toContain(`\0\x0cx-request-id${String.fromCharCode(requestId.length)}${requestId}`);
    expect(text).toContain(`"requestId":"${requestId}"`);
  });
});

describe('the caller', () => {
  it.each([
    ['billing', 'billing'],
    ['x'.repeat(64), 'x'.repeat(64)],
    ['x'.repeat(65), undefined],
    ['two words', undefined],
    ['', undefined],
    ['a\r\nx-sidecar-caller: b', undefined],
  ])('%j is recorded as %s', async (value, recorded) => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const { status } = await sendRaw(proxy.url, formatRequest(`x-sidecar-caller: ${value}\r\n`));
    expect(status).toBe(recorded === undefined ? 400 : 200);
    expect(await proxy.requestRecords(1)).toMatchObject([{ caller: recorded }]);
  });
});

const UPSTREAM_NAMES = ['x-request-id', 'x-correlation-id', 'request-id', 'x-amzn-requestid', 'cf-ray'];

describe('the upstream’s own id', () => {
  it('is the first valid one of the usual names, and its fields are relayed as they are', async () => {
    let fields: readonly (readonly [string, string])[] = [];
    const { url: apiUrl } = await startRawUpstream((socket) => {
      const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
      socket.write(Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: 0\r\n${lines}\r\n`, 'latin1'));
    });
    await using proxy = await startProxy(apiUrl);
    const name = fc.constantFrom(
      ...UPSTREAM_NAMES,
      'X-Request-Id',
      'CF-RAY',
      'content-type',
      'server',
      'x-amzn-trace-id',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(name, VALUE), { maxLength: 5 }), async (sent) => {
        fields = sent;
        const before = proxy.ended().length;
        const { bytes } = await sendRaw(proxy.url, formatRequest('x-request-id: mine\r\n'));
        const head = bytes.toString('latin1');
        for (const [each, value] of sent) expect(head).toContain(`${each}: ${value}`);
        const valid = sent.filter(([, value]) => /^[!-~]{1,128}$/.test(value));
        const expected = UPSTREAM_NAMES.flatMap((each) =>
          valid.filter(([candidate]) => candidate.toLowerCase() === each),
        )[0]?.[1];
        const record = (await proxy.requestRecords(before + 1)).at(-1);
        expect(record).toMatchObject({ requestId: 'mine' });
        expect(record?.upstreamRequestId).toBe(expected);
      }),
      { numRuns: 150 },
    );
  });

  it.each([
    [
      'is that of the newest attempt that was sent',
      'theirs-1',
      (response: ServerResponse) => response.writeHead(200, { 'request-id': 'theirs-1' }).end(),
    ],
    [
      'is none where the newest attempt brought no response',
      undefined,
      (response: ServerResponse) => response.destroy(),
    ],
  ])('%s', async (_, expected, respondLast) => {
    await using upstream = await startRecordingUpstream((_request, response, index) => {
      if (index === 0) response.writeHead(429, { 'retry-after': '0', 'request-id': 'theirs-0' }).end();
      else respondLast(response);
    });
    await using proxy = await startProxy(upstream.url);
    await sendRaw(proxy.url, formatRequest('Content-Length: 0\r\n', '127.0.0.1', 'POST /'));
    expect(await proxy.requestRecords(1)).toMatchObject([{ attempts: 2, upstreamRequestId: expected }]);
  });

  it('is recorded of an upgrade', async () => {
    await using upstream = await startRecordingUpstream(
      (_, response) => void response.writeHead(404, { 'cf-ray': 'theirs' }).end(),
    );
    await using proxy = await startProxy(upstream.url, {
      serveUpgrade: createUpgradeHandler({
        trust: undefined,
        egress: selectNoProxy,
        connectTimeoutMs: 5000,
        maxHeaderBytes: 65_536,
      }),
    });
    expect((await sendRaw(proxy.url, Buffer.from(UPGRADE))).status).toBe(404);
    expect(await proxy.requestRecords(1)).toMatchObject([{ requestId: 'client-1', upstreamRequestId: 'theirs' }]);
  });

  it('has no part of a token, in no name and no encoding', async () => {
    const token = 'a-Token.that_is~long/enough+to=have/parts';
    const echoes = [
      token,
      token.slice(3, 20),
      encodeURIComponent(token),
      Buffer.from(`x${token}`).toString('base64url'),
    ];
    const { url, sidecar, requestRecords } = await startInProcess({
      respondToTokenRequest: (_, response) =>
        void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 3600 })),
      respond: (_, response, index) =>
        void response
          .writeHead(200, { [UPSTREAM_NAMES[index % UPSTREAM_NAMES.length]!]: `id-${echoes[index % echoes.length]!}` })
          .end(),
    });
    for (let call = 0; call < UPSTREAM_NAMES.length * echoes.length; call++) await send(url);
    const records = await requestRecords(UPSTREAM_NAMES.length * echoes.length);
    const shown = [
      JSON.stringify(records),
      ...(await Promise.all(['/status', '/'].map(async (path) => (await fetch(sidecar.adminUrl + path)).text()))),
    ];
    for (const { upstreamRequestId } of records) expect(upstreamRequestId).toContain('********');
    for (const text of shown)
      for (const echo of echoes)
        for (let at = 0; at + 11 <= echo.length; at++) expect(text).not.toContain(echo.slice(at, at + 11));
  });
});
