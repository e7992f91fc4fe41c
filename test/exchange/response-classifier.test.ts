/** What the status and headers of a response mean for the throttle, and which header fields are shown. */
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

describe('a 401', () => {
  const say = (challenge: string): readonly SidecarEvent[] => {
    read(401, 'WWW-Authenticate', challenge);
    return events;
  };

  it('with a reason in its challenge is quoted, bounded, in printable characters on one line', () => {
    const words = String.raw`The \"token\" expired` + '\u0001\u00e9\n' + 'x'.repeat(400);
    const [event, ...others] = say(`Basic realm="a", Bearer error="invalid_token", error_description="${words}"`);
    expect(others).toEqual([]);
    expect(event).toMatchObject({ kind: 'unauthorized', route: 'default' });
    const { detail } = event as { detail: string };
    expect(detail).toMatch(/^the partner says "invalid_token: The "token" expired x+"$/);
    expect(detail.length).toBeLessThan(240);
  });

  it.each(['Bearer', 'Bearer realm="x"', ''])('without one says nothing: %j', (challenge) => {
    expect(say(challenge)).toEqual([]);
  });

  it('shows no token that the upstream echoes', () => {
    const maskSecrets = (text: string): string => text.replaceAll('the-token', '********');
    const observe = (event: SidecarEvent) => events.push(event);
    const fields = ['WWW-Authenticate', 'Bearer error_description="the-token is unknown"'];
    new ResponseClassifier({ route: 'default', replicas: 1, clock, maskSecrets, observe }).classify({
      status: 401,
      statusText: '',
      headers: fields,
    });
    expect(events).toMatchObject([{ detail: 'the partner says "******** is unknown"' }]);
  });
});

describe('the clock of a response that states a limit', () => {
  it('is compared once a minute', async () => {
    const date = new Date(clock.wallNow() + 90_000).toUTCString();
    for (let call = 0; call < 3; call++) read(200, 'X-RateLimit-Remaining', '5', 'Date', date);
    const compared = () => events.filter(({ kind }) => kind === 'clock-compared');
    expect(compared()).toHaveLength(1);
    expect(Math.abs((compared()[0] as { skewMs: number }).skewMs - 90_000)).toBeLessThan(1001);
    await clock.advance(60_000);
    read(200, 'X-RateLimit-Remaining', '5', 'Date', date);
    expect(compared()).toHaveLength(2);
  });
});

describe('a response', () => {
  it.each([200, 201, 304, 400, 401, 404])('of %i was let through: it counts as accepted', (status) => {
    expect(read(status)).toEqual({ permitReport: { kind: 'accepted' }, isRateLimited: false, statedWaitMs: undefined });
  });

  it.each([500, 502, 504])('of %i says nothing of the limit', (status) => {
    expect(resultOf(status)).toEqual({ kind: 'unknown' });
  });

  it.each([403, 420, 503, 509, 529])('of %i may be a refusal without any field', (status) => {
    expect(read(status)).toEqual({
      permitReport: { kind: 'suspect', status },
      isRateLimited: false,
      statedWaitMs: undefined,
    });
  });

  it.each([500, 502, 503, 504])('of %i that states a quota says nothing of the limit', (status) => {
    expect(resultOf(status, 'X-RateLimit-Remaining', '5', 'X-RateLimit-Reset', '9')).toEqual({ kind: 'unknown' });
  });

  it('of 429 is a refusal with or without fields, of 503 with a stated wait only', () => {
    expect(read(429)).toMatchObject({ permitReport: { kind: 'rate-limited' }, isRateLimited: true });
    expect(resultOf(429)).toMatchObject({ signal: { statedWaitMs: undefined }, fields: {} });
    expect(resultOf(503, 'Retry-After', '2')).toMatchObject({ kind: 'rate-limited', signal: { statedWaitMs: 2000 } });
  });

  it('of 503 is evaluated by the governor, and repeated like every 503', () => {
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

  it('a 403 is classified by what the upstream stated', () => {
    signals = create(4);
    expect(read(403, 'X-RateLimit-Remaining', '3', 'X-RateLimit-Reset', '5').isRateLimited).toBe(false);
  });
});

describe('the header fields that are shown of a refusal', () => {
  const fieldsOf = (...fields: string[]): unknown => {
    const report = resultOf(429, ...fields);
    return report.kind === 'rate-limited' ? report.fields : undefined;
  };

  it('are those whose names suggest a limit, read or not', () => {
    expect(fieldsOf('Retry-After', '2', 'X-Quota-Left', '0', 'Date', 'today')).toEqual({
      'retry-after': 2,
      'x-quota-left': 0,
    });
  });

  it('have their length where they are not understood, and are no credentials', () => {
    const fields = ['X-Quota-Left', '9'.repeat(500), 'X-Throttle-Auth', 'hush', 'Set-Cookie', 'limit=1'];
    expect(fieldsOf(...fields, 'X-Amzn-Limit', 'a')).toEqual({
      'x-quota-left': { unparsed: 500 },
      'x-amzn-limit': { unparsed: 1 },
    });
  });

  it('are at most 24', () => {
    const many = Array.from({ length: 100 }, (_, at) => [`X-RateLimit-F${at}`, '1']);
    expect(Object.keys(fieldsOf(...many.flat()) as object)).toHaveLength(24);
  });

  it('include a mapped field with any name, unless the name suggests a credential', () => {
    signals.setHints({ 'X-Calls-Left': 'remaining', 'X-Session-Left': 'limit' });
    expect(fieldsOf('X-Calls-Left', '0', 'X-Session-Left', '7')).toEqual({ 'x-calls-left': 0 });
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

describe('a mapped field', () => {
  it('is read from the next response on', () => {
    read(429, 'X-Quota-Wait', '3');
    expect(read(429, 'X-Quota-Wait', '3').statedWaitMs).toBeUndefined();
    signals.setHints({ 'X-Quota-Wait': 'retryAfter' });
    expect(read(429, 'x-quota-wait', '3').statedWaitMs).toBe(3000);
    expect(read(403, 'X-QUOTA-WAIT', '3').isRateLimited).toBe(true);
  });

  it('of an accepted response is read with any first letter', () => {
    signals.setHints({ 'Quota-Left': 'remaining', 'Quota-Per': 'window' });
    expect(resultOf(200, 'quota-left', '7', 'QUOTA-PER', '60')).toMatchObject({
      hint: { quotas: [{ remaining: 7, windowMs: 60_000 }] },
    });
  });
});
