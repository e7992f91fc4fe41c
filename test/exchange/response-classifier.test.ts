/** What the status and headers of a response mean for the throttle, and which forms of limits are reported. */
import { beforeEach, describe, expect, it } from 'vitest';
import { ResponseClassifier, type ResponseClassification } from '../../src/exchange/response-classifier.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { ManualClock } from '../support/manual-clock.ts';

const clock = new ManualClock();
let events: SidecarEvent[];
let signals: ResponseClassifier;

function create(share = 1): ResponseClassifier {
  return new ResponseClassifier({ route: 'default', replicas: share, clock, observe: (event) => events.push(event) });
}

beforeEach(() => {
  events = [];
  signals = create();
});

function read(status: number, ...fields: string[]): ResponseClassification {
  return signals.classify({ status, statusText: '', headers: fields });
}

function resultOf(status: number, ...fields: string[]): ResponseClassification['permitReport'] {
  return read(status, ...fields).permitReport;
}

describe('a response', () => {
  it.each([200, 201, 304, 400, 401, 403, 404])('of %i was let through: it counts as accepted', (status) => {
    expect(read(status)).toEqual({ permitReport: { kind: 'accepted' }, isRateLimited: false, statedWaitMs: undefined });
  });

  it.each([500, 502, 503, 504])('of %i says nothing of the limit', (status) => {
    expect(resultOf(status)).toEqual({ kind: 'unknown' });
    expect(resultOf(status, 'X-RateLimit-Remaining', '5', 'X-RateLimit-Reset', '9')).toEqual({ kind: 'unknown' });
  });

  it('of 429 is a refusal with or without fields, of 503 with a stated wait only', () => {
    expect(read(429)).toMatchObject({ permitReport: { kind: 'rate-limited' }, isRateLimited: true });
    expect(resultOf(429)).toMatchObject({ signal: { statedWaitMs: undefined }, fields: {} });
    expect(resultOf(503, 'Retry-After', '2')).toMatchObject({ kind: 'rate-limited', signal: { statedWaitMs: 2000 } });
  });

  it('of 503 is judged by the governor, and repeated like every 503', () => {
    expect(read(503, 'Retry-After', '2')).toMatchObject({ isRateLimited: false, statedWaitMs: 2000 });
  });

  it('that says how much is left passes it on', () => {
    const hint = { remaining: 5, resetInMs: 9000, quotas: [{ remaining: 5, resetInMs: 9000 }] };
    expect(resultOf(200, 'X-RateLimit-Remaining', '5', 'x-ratelimit-reset', '9')).toMatchObject({
      kind: 'accepted',
      hint,
    });
  });

  it('may state a list in several lines; of several Retry-After the first counts', () => {
    const lines = ['RateLimit', '"a";r=9;t=9', 'Retry-After', '3', 'RateLimit', '"b";r=2;t=4', 'Retry-After', '7'];
    expect(resultOf(429, ...lines)).toMatchObject({ signal: { statedWaitMs: 3000, remaining: 2, resetInMs: 4000 } });
  });
});

describe('a 403', () => {
  it.each([
    ['Retry-After', ['Retry-After', '60'], 60_000],
    ['nothing left and a reset', ['X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '5'], 5000],
    ['nothing left', ['X-RateLimit-Remaining', '0'], undefined],
    [
      'nothing left of one of several',
      ['X-RateLimit-Remaining-Hour', '0', 'X-RateLimit-Remaining-Minute', '3'],
      undefined,
    ],
  ])('with %s is a refusal for the rate', (_, fields, statedWaitMs) => {
    expect(read(403, ...fields)).toMatchObject({
      isRateLimited: true,
      statedWaitMs,
      permitReport: { kind: 'rate-limited' },
    });
  });

  it.each([
    ['with calls left', ['X-RateLimit-Remaining', '7', 'X-RateLimit-Reset', '5']],
    ['with a Retry-After that is none', ['Retry-After', 'soon']],
    [
      'with nothing left of something that is no call',
      ['RateLimit-Policy', '"b";q=9;qu="content-bytes"', 'RateLimit', '"b";r=0'],
    ],
  ])('%s is no refusal for the rate', (_, fields) => {
    expect(read(403, ...fields)).toMatchObject({ isRateLimited: false, permitReport: { kind: 'accepted' } });
  });

  it.each(['Bearer realm="api", error="insufficient_scope", scope="quotes"', 'Bearer error=insufficient_scope'])(
    'that asks for a scope is never one: %s',
    (challenge) => {
      const fields = ['Retry-After', '60', 'WWW-Authenticate', 'Basic realm="x"', 'www-authenticate', challenge];
      expect(read(403, ...fields)).toMatchObject({ isRateLimited: false, permitReport: { kind: 'accepted' } });
    },
  );

  it('that asks for another login is one all the same', () => {
    const challenge = ['WWW-Authenticate', 'Bearer error="invalid_token", error_description="no insufficient_scope"'];
    expect(read(403, 'Retry-After', '60', ...challenge).isRateLimited).toBe(true);
  });
});

describe('among replicas', () => {
  it('what is stated is divided, what is to be waited for is not', () => {
    signals = create(4);
    const fields = ['RateLimit-Policy', '"a";q=100;w=60', 'RateLimit', '"a";r=7;t=30', 'Retry-After', '9'];
    expect(read(429, ...fields)).toMatchObject({
      statedWaitMs: 9000,
      permitReport: {
        signal: {
          statedWaitMs: 9000,
          remaining: 1,
          resetInMs: 30_000,
          quotas: [{ quota: 25, windowMs: 60_000, remaining: 1, resetInMs: 30_000 }],
        },
      },
    });
  });

  it('a quota smaller than their number is one call in a longer window', () => {
    signals = create(4);
    expect(resultOf(200, 'RateLimit-Policy', '"a";q=2;w=60')).toMatchObject({
      hint: { quotas: [{ quota: 1, windowMs: 120_000 }] },
    });
  });

  it('a 403 is judged by what the upstream said', () => {
    signals = create(4);
    expect(read(403, 'X-RateLimit-Remaining', '3', 'X-RateLimit-Reset', '5').isRateLimited).toBe(false);
  });
});

describe('a new shape', () => {
  it('of a refusal is reported once, with its headers', () => {
    for (const wait of ['2', '3', '45']) read(429, 'Retry-After', wait, 'Date', 'today');
    expect(events).toEqual([
      {
        kind: 'rate-limit-shape',
        route: 'default',
        on: 'refused',
        status: 429,
        shape: 'retry-after number',
        fields: { 'retry-after': 2 },
        unreadFields: [],
        configuredHints: {},
      },
    ]);
  });

  it('is another status, another field, another form; not another value or order', () => {
    read(429);
    read(403, 'Retry-After', '1');
    read(429, 'Retry-After', '1');
    read(429, 'Retry-After', 'Sun, 01 Nov 2026 12:00:30 GMT');
    read(429, 'Retry-After', '1', 'X-RateLimit-Reset', '1793534400');
    read(429, 'X-RateLimit-Reset', '1793534999', 'Retry-After', '2');
    read(429, 'Retry-After', '1', 'X-RateLimit-Reset', '1793534400000');
    expect(events.map((event) => (event.kind === 'rate-limit-shape' ? `${event.status} ${event.shape}` : ''))).toEqual([
      '403 retry-after number',
      '429 retry-after number',
      '429 retry-after date',
      '429 retry-after number, x-ratelimit-reset epoch seconds',
      '429 retry-after number, x-ratelimit-reset epoch milliseconds',
    ]);
  });

  it('of accepted responses is reported once for all statuses', () => {
    for (const status of [200, 201, 404]) read(status, 'RateLimit', '"a";r=9;t=9', 'RateLimit-Policy', '"a";q=9;w=9');
    expect(events).toMatchObject([{ on: 'accepted', status: 200, shape: 'ratelimit items, ratelimit-policy items' }]);
  });

  it('is not reported for the Retry-After of an accepted response', () => {
    read(202, 'Retry-After', '5');
    read(301, 'Retry-After', '5');
    expect(events).toEqual([]);
  });

  it('of a failing server is reported as such', () => {
    read(500, 'X-RateLimit-Remaining', '0');
    expect(events).toMatchObject([{ on: 'failed', status: 500 }]);
  });

  it('shows of fields that are not understood how long they are, and no credential', () => {
    read(429, 'X-Quota-Left', '9'.repeat(500), 'X-Throttle-Auth', 'hush', 'Set-Cookie', 'limit=1', 'X-Amzn-Limit', 'a');
    expect(events).toMatchObject([{ fields: { 'x-quota-left': { unparsed: 500 }, 'x-amzn-limit': { unparsed: 1 } } }]);
    expect(JSON.stringify(events)).not.toMatch(/hush|cookie/);
  });

  it('is reported at most 50 times, with at most 24 headers', () => {
    const many = Array.from({ length: 100 }, (_, at) => [`X-RateLimit-F${at}`, '1']);
    read(429, ...many.flat());
    for (const field of many) read(429, ...field);
    expect(events).toHaveLength(50);
    expect(Object.keys((events[0] as { fields: object }).fields)).toHaveLength(24);
  });
});

describe('what several responses state', () => {
  it('a plain reset that falls by a thousand a second counts milliseconds', async () => {
    for (const reset of ['58000', '57000', '56000']) {
      read(200, 'X-RateLimit-Remaining', '5', 'X-RateLimit-Reset', reset);
      await clock.advance(1000);
    }
    expect(read(429, 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '55000').statedWaitMs).toBe(55_000);
  });

  it('one that falls by one a second counts seconds', async () => {
    for (const reset of ['58', '57', '56']) {
      read(200, 'X-RateLimit-Remaining', '5', 'X-RateLimit-Reset', reset);
      await clock.advance(1000);
    }
    expect(read(429, 'X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', '55').statedWaitMs).toBe(55_000);
  });

  it('quotas of partitions that change from call to call are ignored', () => {
    const stated = (partition: string): string[] => ['RateLimit', `"a";r=0;t=9;pk=:${partition}:`];
    expect(resultOf(200, ...stated('YQ=='))).toMatchObject({ hint: { remaining: 0 } });
    expect(resultOf(200, ...stated('Yg=='))).toMatchObject({ hint: { remaining: undefined, quotas: [] } });
    expect(read(403, ...stated('YQ==')).isRateLimited).toBe(false);
  });
});

describe('a refusal with fields that nothing reads', () => {
  const shapesOf = (): unknown[] =>
    events.map((event) => (event.kind === 'rate-limit-shape' ? event.unreadFields : undefined));

  it('is reported once for each set of fields, with the meanings that they suggest', () => {
    for (const left of ['0', '4', '7'])
      read(429, 'X-Quota-Left', left, 'X-Quota-Renew', '1793534400', 'X-Limit-Note', 'a b');
    read(429, 'Retry-After', '1', 'X-Throttle-Wait-Ms', '250');
    expect(shapesOf()).toEqual([
      [
        { name: 'x-quota-left', suggestion: 'remaining' },
        { name: 'x-quota-renew', suggestion: 'resetAt' },
        { name: 'x-limit-note', suggestion: undefined },
      ],
      [{ name: 'x-throttle-wait-ms', suggestion: 'retryAfterMs' }],
    ]);
  });

  it('is not reported when it has no field of a limit', () => {
    read(429);
    read(429, 'Content-Type', 'text/html', 'Date', 'today');
    expect(events).toEqual([]);
  });

  it('suggests no meaning for tokens, bytes and calls at a time', () => {
    read(429, 'X-Limit-Bytes-Remaining', '0', 'X-Concurrency-Limit', '8');
    expect(shapesOf()).toEqual([
      [
        { name: 'x-limit-bytes-remaining', suggestion: undefined },
        { name: 'x-concurrency-limit', suggestion: undefined },
      ],
    ]);
  });

  it('reads the fields from the response after they were mapped', () => {
    read(429, 'X-Quota-Wait', '3');
    expect(read(429, 'X-Quota-Wait', '3').statedWaitMs).toBeUndefined();
    signals.setHints({ 'X-Quota-Wait': 'retryAfter' });
    expect(read(429, 'x-quota-wait', '3').statedWaitMs).toBe(3000);
    expect(read(403, 'X-QUOTA-WAIT', '3').isRateLimited).toBe(true);
    expect(shapesOf()).toEqual([[{ name: 'x-quota-wait', suggestion: 'retryAfter' }], [], []]);
  });

  it('is reported with the hints that are configured, since a proposal replaces them', () => {
    signals.setHints({ 'X-Quota-Wait': 'retryAfter' });
    read(429, 'X-Quota-Wait', '3', 'X-Quota-Left', '0');
    expect(events).toMatchObject([
      { unreadFields: [{ name: 'x-quota-left' }], configuredHints: { 'X-Quota-Wait': 'retryAfter' } },
    ]);
  });

  it('shows a mapped field whose name does not suggest a limit, but no credential', () => {
    signals.setHints({ 'X-Calls-Left': 'remaining', 'X-Session-Left': 'limit' });
    const fields = { 'x-calls-left': 0 };
    expect(resultOf(429, 'X-Calls-Left', '0', 'X-Session-Left', '7')).toMatchObject({ fields });
    expect(events).toMatchObject([{ fields }]);
    expect(JSON.stringify(events)).not.toContain('"7"');
  });

  it('reads a mapped field of an accepted response with any first letter', () => {
    signals.setHints({ 'Quota-Left': 'remaining', 'Quota-Per': 'window' });
    expect(resultOf(200, 'quota-left', '7', 'QUOTA-PER', '60')).toMatchObject({
      hint: { quotas: [{ remaining: 7, windowMs: 60_000 }] },
    });
  });
});
