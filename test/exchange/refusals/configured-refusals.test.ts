/** What a response that `throttle.refusals` names sets off: all that a 429 does, and nothing where a rule does not match. */
import { writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { RefusalRule } from '../../../src/throttle/refusal-rule.ts';
import { scratchFile } from '../../config/base-env.ts';
import { startInProcess, until, type InProcessOptions } from '../../composition/in-process.ts';
import { send } from '../../composition/send.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { echo, type RespondTo } from '../../support/recording-upstream.ts';

const TEXT = 'limit exceeded';

function start(rules: readonly RefusalRule[], respond: RespondTo, rest: InProcessOptions = {}) {
  const env = { SIDECAR_THROTTLE_REFUSALS: JSON.stringify(rules), ...rest.env };
  return startInProcess({ ...rest, respond, env });
}

/** Refuses the first `times` requests. */
function refusing(
  times: number,
  status: number,
  body = 'no',
  fields: Readonly<Record<string, string>> = {},
): RespondTo {
  return (request, response, index) => {
    if (index >= times) return echo(request, response, index);
    response.writeHead(status, { 'content-type': 'text/plain', ...fields }).end(body);
  };
}

describe.each([400, 403, 420, 500, 502, 503, 504, 509, 529, 302])('a bare %i that is configured', (status) => {
  it.each(['GET', 'POST', 'PATCH'])(
    'is repeated for %s beyond retry.attempts, and counted as rate-limited',
    async (method) => {
      const { url, api, eventsOf, metric } = await start([{ status }], refusing(6, status));
      const body = method === 'GET' ? {} : { body: 'again' };
      expect((await send(url, { method, ...body })).status).toBe(200);
      expect(api.requests.map((request) => request.body.toString())).toEqual(Array(7).fill(body.body ?? ''));
      expect(eventsOf('retry').map(({ reason }) => reason)).toEqual(Array(6).fill('rate_limited'));
      expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual([
        ...Array<string>(6).fill('rate_limited'),
        'ok',
      ]);
      expect(eventsOf('rate-limited')).toHaveLength(6);
      expect(eventsOf('retry-budget-exhausted')).toEqual([]);
      expect(await metric('bearer_sidecar_rate_limited_total{route="default"}')).toBe(6);
      expect(eventsOf('request-ended')).toHaveLength(1);
    },
  );

  it('pauses all calls from the first one on, for as long as its Retry-After says', async () => {
    const clock = new ManualClock();
    const respond = refusing(1, status, 'no', { 'retry-after': '2' });
    const { url, api, eventsOf } = await start([{ status }], respond, { clock });
    const first = send(url, { method: 'POST', body: 'first' });
    await until(() => eventsOf('rate-limited').length === 1, 'a pause');
    const second = send(url, { method: 'POST', body: 'second' });
    await clock.advance(1999);
    expect(api.requests).toHaveLength(1);
    await clock.advance(1);
    expect([(await first).text, (await second).text]).toEqual(['first', 'second']);
    expect(eventsOf('rate-limited')).toMatchObject([{ status, pauseMs: 2000, stated: true }]);
  });

  it('has the reset obeyed of a quota without remaining calls', async () => {
    const fields = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '3' };
    const clock = new ManualClock();
    const { url, eventsOf } = await start([{ status }], refusing(1, status, 'no', fields), { clock });
    const sent = send(url);
    await until(() => eventsOf('rate-limited').length === 1, 'a pause');
    expect(eventsOf('rate-limited')).toMatchObject([{ pauseMs: 3000, stated: true }]);
    await clock.advance(3000);
    expect((await sent).status).toBe(200);
  });

  it('whose wait would pass the deadline goes to the client unchanged', async () => {
    const { url, api } = await start(
      [{ status }],
      refusing(1, status, 'kept', { 'retry-after': '61', 'x-partner': 'a' }),
    );
    const sent = await send(url, { method: 'POST', body: 'x' });
    expect(sent).toMatchObject({ status, text: 'kept', code: undefined, fields: { 'x-partner': 'a' } });
    expect(api.requests).toHaveLength(1);
  });

  it('of a POST goes to the client where retry.unsafeOn429 is false', async () => {
    const { url, api } = await start([{ status }], refusing(1, status), {
      env: { SIDECAR_RETRY_UNSAFE_ON_429: 'false' },
    });
    expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status, text: 'no' });
    expect(api.requests).toHaveLength(1);
  });
});

describe('a rule with a header field', () => {
  it.each<[string, Readonly<Record<string, string>>, boolean]>([
    ['X-Limited', {}, false],
    ['X-Limited', { 'x-limited': '' }, true],
    ['x-limited', { 'X-LIMITED': 'any' }, true],
    ['X-Limited: Yes', { 'x-limited': 'yEs' }, true],
    ['X-Limited:yes', { 'x-limited': ' yes ' }, true],
    ['X-Limited: yes', { 'x-limited': 'yes, really' }, false],
    ['X-Limited: yes', {}, false],
  ])('%s and a response with %j: %s', async (header, fields, isRefusal) => {
    const { url, api } = await start([{ status: 403, header }], refusing(1, 403, 'no', fields));
    expect((await send(url, { method: 'POST', body: 'x' })).status).toBe(isRefusal ? 200 : 403);
    expect(api.requests).toHaveLength(isRefusal ? 2 : 1);
  });
});

describe('a text in the body', () => {
  it.each([200, 201, 302, 400, 403, 503])('of a %i is a refusal for GET: paused, learned, repeated', async (status) => {
    const rules = [{ status, bodyContains: TEXT }];
    const { url, api, eventsOf } = await start(rules, refusing(3, status, `{"error":"${TEXT}"}`));
    expect(await send(url)).toMatchObject({ status: 200, text: '' });
    expect(api.requests).toHaveLength(4);
    expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual([
      ...Array<string>(3).fill('rate_limited'),
      'ok',
    ]);
    expect(eventsOf('rate-limited')).toHaveLength(3);
  });

  it('of a 200 is not repeated for POST, since the call may have been carried out, and pauses the others', async () => {
    const respond = refusing(1, 200, TEXT, { 'retry-after': '2' });
    const clock = new ManualClock();
    const { url, api, eventsOf } = await start([{ status: 200, bodyContains: TEXT }], respond, { clock });
    expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 200, text: TEXT });
    expect(eventsOf('rate-limited')).toMatchObject([{ status: 200, pauseMs: 2000 }]);
    expect(eventsOf('attempt-ended')).toMatchObject([{ outcome: 'rate_limited' }]);
    const next = send(url);
    await clock.advance(1999);
    expect(api.requests).toHaveLength(1);
    await clock.advance(1);
    expect((await next).status).toBe(200);
  });

  it.each([400, 503])('of a %i is repeated for POST', async (status) => {
    const { url, api } = await start([{ status, bodyContains: TEXT }], refusing(2, status, `a ${TEXT} b`));
    expect((await send(url, { method: 'POST', body: 'x' })).text).toBe('x');
    expect(api.requests).toHaveLength(3);
  });

  it('that is missing leaves the ordinary rules: a 503 delays no other call, and is repeated within retry.attempts', async () => {
    const { url, api, eventsOf } = await start([{ status: 503, bodyContains: TEXT }], refusing(9, 503, 'down'));
    expect(await send(url)).toMatchObject({ status: 503, text: 'down' });
    expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 503, text: 'down' });
    expect(api.requests).toHaveLength(5);
    expect(eventsOf('rate-limited')).toEqual([]);
    expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(Array(5).fill('error_status'));
  });

  it('is compared with regard to case', async () => {
    const { url, eventsOf } = await start([{ status: 200, bodyContains: TEXT }], refusing(1, 200, TEXT.toUpperCase()));
    expect((await send(url)).text).toBe(TEXT.toUpperCase());
    expect(eventsOf('rate-limited')).toEqual([]);
  });

  it('is not looked for in an encoded body, nor in an event stream, which goes on at once', async () => {
    const encoded = gzipSync(TEXT);
    const rules = [{ status: 200, bodyContains: TEXT }];
    const stream = 'text/event-stream; charset=utf-8';
    const { url, eventsOf } = await start(rules, (_, response, index) => {
      if (index === 0) response.writeHead(200, { 'content-encoding': 'gzip' }).end(encoded);
      else response.writeHead(200, { 'content-type': stream }).write(`data: ${TEXT}\n\n`);
    });
    await fetch(url).then((response) => response.text());
    const response = await fetch(url);
    const first = await response.body?.getReader().read();
    expect(Buffer.from(first?.value ?? []).toString()).toContain(TEXT);
    expect(eventsOf('rate-limited')).toEqual([]);
  });

  it.each([
    ['HEAD', 200],
    ['HEAD', 503],
    ['GET', 205],
    ['GET', 302],
  ])('is not waited for where there is no body: %s and %i', async (method, status) => {
    const respond: RespondTo = (_, response) => void response.writeHead(status, { 'content-length': 0 }).end();
    const { url, eventsOf } = await start([{ status, bodyContains: TEXT }], respond);
    expect((await send(url, { method })).status).toBe(status);
    expect(eventsOf('rate-limited')).toEqual([]);
  });

  it.each(['deadline', 'client-left', 'broke-off', 'idle', 'drain'] as const)(
    'that has not come by the end (%s): one outcome, one attempt, nothing lost, no slot kept',
    async (end) => {
      const clock = new ManualClock();
      const continuations: (() => void)[] = [];
      const respond: RespondTo = ({ path }, response) => {
        if (path === '/other') return void response.writeHead(404).end();
        response.writeHead(200, { 'content-type': 'text/plain' }).write('first ');
        continuations.push(() => (end === 'broke-off' ? response.destroy() : response.end('second')));
      };
      const env = { SIDECAR_DEADLINE_MS: '5000', SIDECAR_BODY_IDLE_TIMEOUT_MS: end === 'idle' ? '1000' : '0' };
      const { url, eventsOf, requestRecords, throttle, sidecar } = await start(
        [{ status: 200, bodyContains: TEXT }],
        respond,
        {
          clock,
          env,
        },
      );
      const aborter = new AbortController();
      const sent = send(url, { signal: aborter.signal }).catch(() => undefined);
      await until(() => continuations.length === 1, 'the upstream has begun');
      // What was sent before the response to another request has been read before it.
      await send(`${url}/other`);
      if (end === 'client-left') aborter.abort();
      else if (end === 'drain') await Promise.all([sidecar.drain(), clock.advance(10_000)]);
      else if (end === 'idle') await clock.advance(1000);
      else if (end === 'deadline') await clock.advance(5000);
      if (end === 'deadline' || end === 'broke-off') continuations[0]?.();
      const received = await sent;
      const [, outcome, ...others] = await requestRecords(2);
      const [, attempt, ...repeated] = eventsOf('attempt-ended');
      expect([...others, ...repeated]).toEqual([]);
      if (end !== 'drain') expect(await throttle()).toEqual({ queued: 0, inFlight: 0, streams: 0 });
      if (end === 'deadline') {
        expect(received).toMatchObject({ status: 200, text: 'first second' });
        expect(attempt?.outcome).toBe('ok');
      } else if (end === 'client-left') {
        expect(attempt?.outcome).toBe('client_left');
      } else {
        const replies = {
          'broke-off': [502, 'UPSTREAM_RESET'],
          idle: [504, 'UPSTREAM_TIMEOUT'],
          drain: [504, 'UPSTREAM_TIMEOUT'],
        } as const;
        const [code, localReply] = replies[end];
        expect(received).toMatchObject({ status: code, code: localReply });
        expect(outcome).toMatchObject({ code, source: 'sidecar', localReply });
        expect(attempt?.outcome).toBe('cut');
      }
    },
  );

  it('that has come lets the rest of a large refusal go to the client', async () => {
    const body = TEXT + 'x'.repeat(300_000);
    const { url, api, eventsOf } = await start([{ status: 503, bodyContains: TEXT }], refusing(1, 503, body));
    expect(await send(url)).toMatchObject({ status: 503, text: body });
    expect(api.requests).toHaveLength(1);
    expect(eventsOf('rate-limited')).toHaveLength(1);
  });
});

it('a 403 for a missing scope is none, also where 403 is named: no wait helps', async () => {
  const fields = { 'www-authenticate': 'Bearer error="insufficient_scope", scope="write"' };
  const { url, api, eventsOf } = await start([{ status: 403 }], refusing(9, 403, 'no', fields));
  expect((await send(url)).status).toBe(403);
  expect(api.requests).toHaveLength(1);
  expect(eventsOf('rate-limited')).toEqual([]);
});

it('a response that no rule names is handled as without rules', async () => {
  const { url, api, eventsOf } = await start([{ status: 503 }], refusing(9, 403));
  expect((await send(url)).status).toBe(403);
  expect(api.requests).toHaveLength(1);
  expect(eventsOf('rate-limited')).toEqual([]);
});

it('a reload changes the rules for the next request', async () => {
  const file = scratchFile('throttle: { refusals: [] }', 'config.yaml');
  const { url, api, sidecar } = await startInProcess({ respond: refusing(2, 420), file });
  expect((await send(url, { method: 'POST', body: 'x' })).status).toBe(420);
  writeFileSync(file, 'throttle: { refusals: [{ status: 420 }] }');
  sidecar.reload();
  expect((await send(url, { method: 'POST', body: 'x' })).status).toBe(200);
  expect(api.requests).toHaveLength(3);
});

it('a pause of a refusal that the body decides begins when it is decided', async () => {
  const clock = new ManualClock();
  const heads: (() => void)[] = [];
  const respond: RespondTo = (request, response, index) => {
    if (index > 0) return echo(request, response, index);
    response.writeHead(403, { 'content-type': 'text/plain', 'retry-after': '2' }).write('first ');
    heads.push(() => response.end(TEXT));
  };
  const { url, api, eventsOf } = await start([{ status: 403, bodyContains: TEXT }], respond, { clock });
  const first = send(url);
  await until(() => heads.length === 1, 'the beginning of the body');
  await clock.advance(3000);
  heads[0]?.();
  await until(() => eventsOf('rate-limited').length === 1, 'a refusal');
  const second = send(url);
  await clock.advance(1998);
  expect(api.requests).toHaveLength(1);
  await clock.advance(3000);
  expect([(await first).status, (await second).status]).toEqual([200, 200]);
});
