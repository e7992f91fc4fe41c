/**
 * A statement about limits speaks of the instant at which its origin made it, by its origin's clock: what is waited is what was meant, in
 * every form, for every skew of the clocks and for every time in a cache.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ResponseClassifier, type ResponseClassification } from '../../src/exchange/response-classifier.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { roundsOf } from '../support/rounds.ts';

const DAY_S = 86_400;
const NOW = Date.UTC(2026, 10, 1, 12, 0, 0);
const HINTS = {
  'x-next-call': 'resetAt',
  'x-wait-at': 'retryAfter',
  'x-wait-ms': 'retryAfterMs',
  'x-left': 'remaining',
};

type Fields = Readonly<Record<string, string>>;
/** Fields for an instant of the origin's clock, or a wait in whole seconds from the making of the response. */
type Form = { readonly fields: (value: number) => Fields } & (
  | { readonly states: 'instant'; readonly resolutionMs: number }
  | { readonly states: 'seconds' }
);

const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const DAYS = 'Sun Mon Tue Wed Thu Fri Sat'.split(' ');
const WEEKDAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

/** The three forms of RFC 9110 §5.6.7. */
const HTTP_DATES: readonly ((at: number) => string)[] = [
  (at) => new Date(at).toUTCString(),
  (at) => {
    const date = new Date(at);
    const [, day = '', month = '', year = '', time = ''] = date.toUTCString().split(' ');
    return `${WEEKDAYS[date.getUTCDay()]}, ${day}-${month}-${year.slice(2)} ${time} GMT`;
  },
  (at) => {
    const date = new Date(at);
    const day = String(date.getUTCDate()).padStart(2);
    const time = date.toISOString().slice(11, 19);
    return `${DAYS[date.getUTCDay()]} ${MONTHS[date.getUTCMonth()]} ${day} ${time} ${date.getUTCFullYear()}`;
  },
];
const seconds = (at: number): string => String(at / 1000);
const instant = (resolutionMs: number, fields: (at: number) => Fields): Form => ({
  states: 'instant',
  resolutionMs,
  fields,
});
const duration = (fields: (seconds: number) => Fields): Form => ({ states: 'seconds', fields });
const quota = (reset: string): Fields => ({
  'x-ratelimit-limit': '9',
  'x-ratelimit-remaining': '0',
  'x-ratelimit-reset': reset,
});

const FORMS: Readonly<Record<string, Form>> = {
  'Retry-After as a date': instant(1000, (at) => ({ 'retry-after': HTTP_DATES[0]!(at) })),
  'Retry-After as an RFC 850 date': instant(1000, (at) => ({ 'retry-after': HTTP_DATES[1]!(at) })),
  'Retry-After as an asctime date': instant(1000, (at) => ({ 'retry-after': HTTP_DATES[2]!(at) })),
  'Retry-After in RFC 3339': instant(1, (at) => ({ 'retry-after': new Date(at).toISOString() })),
  'Retry-After in epoch seconds': instant(1000, (at) => ({ 'retry-after': seconds(at) })),
  'Retry-After in epoch milliseconds': instant(1, (at) => ({ 'retry-after': String(at) })),
  'retry-after-ms in epoch milliseconds': instant(1, (at) => ({ 'retry-after-ms': String(at) })),
  'X-RateLimit-Reset in epoch seconds': instant(1000, (at) => quota(seconds(at))),
  'X-RateLimit-Reset in epoch milliseconds': instant(1, (at) => quota(String(at))),
  'X-RateLimit-Reset as a date': instant(1000, (at) => quota(HTTP_DATES[0]!(at))),
  'the RateLimit dictionary with an epoch': instant(1000, (at) => ({
    ratelimit: `limit=9, remaining=0, reset=${seconds(at)}`,
  })),
  'a named field with an epoch': instant(1000, (at) => ({
    'x-ratelimit-requests-remaining': '1',
    'x-ratelimit-retry-after': seconds(at),
  })),
  'a vendor field with a date': instant(1000, (at) => ({ 'x-contentful-ratelimit-reset': HTTP_DATES[0]!(at) })),
  'a hinted instant': instant(1, (at) => ({ 'x-next-call': new Date(at).toISOString(), 'x-left': '0' })),
  'a hinted wait that is an epoch': instant(1000, (at) => ({ 'x-wait-at': seconds(at) })),
  'a hinted wait in milliseconds that is an epoch': instant(1, (at) => ({ 'x-wait-ms': String(at) })),
  'Retry-After in seconds': duration((wait) => ({ 'retry-after': String(wait) })),
  'retry-after-ms': duration((wait) => ({ 'retry-after-ms': String(wait * 1000) })),
  'X-RateLimit-Reset in seconds': duration((wait) => quota(String(wait))),
  'X-RateLimit-Reset-After': duration((wait) => ({
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset-after': String(wait),
  })),
  RateLimit: duration((wait) => ({ ratelimit: `"a";r=0;t=${wait}` })),
  'the window of RateLimit-Policy': duration((wait) => ({
    ratelimit: '"a";r=0',
    'ratelimit-policy': `"a";q=9;w=${wait}`,
  })),
  'a vendor field in milliseconds': duration((wait) => ({
    'x-rate-limit-requests-left': '0',
    'x-rate-limit-time-reset-ms': String(wait * 1000),
  })),
  'a hinted duration': duration((wait) => ({ 'x-wait-at': `${wait}s` })),
};

function classify(fields: Fields, status = 429, ownNow = NOW): ResponseClassification {
  const classifier = new ResponseClassifier({
    ...{ route: 'default', replicas: 1, hints: HINTS },
    clock: new ManualClock(ownNow),
    observe: () => undefined,
  });
  return classifier.classify({ status, statusText: '', headers: Object.entries(fields).flat() });
}

/** The wait of a refusal, or the reset that an accepted call states; milliseconds from now. */
function waitOf(fields: Fields, status = 429, ownNow = NOW): number | undefined {
  const { statedWaitMs, permitReport } = classify(fields, status, ownNow);
  return permitReport.kind === 'accepted' ? (permitReport.hint?.resetInMs ?? statedWaitMs) : statedWaitMs;
}

const date = (at: number): string => new Date(at).toUTCString();

describe.each(Object.entries(FORMS))('%s', (_, form) => {
  it('is waited for as long as was meant, and up to two seconds longer', () => {
    const drawn = fc.record({
      skewMs: fc.integer({ min: -DAY_S * 1000, max: DAY_S * 1000 }),
      // With a fraction of a second that the field leaves out.
      ageMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 100_000 })),
      waitS: fc.oneof(fc.integer({ min: 0, max: 120 }), fc.integer({ min: 0, max: 30 * DAY_S })),
      transitMs: fc.integer({ min: 0, max: 500 }),
      ownFractionMs: fc.integer({ min: 0, max: 999 }),
      status: fc.constantFrom(429, 200),
    });
    fc.assert(
      fc.property(drawn, ({ skewMs, ageMs, waitS, transitMs, ownFractionMs, status }) => {
        const ownNow = NOW + ownFractionMs;
        const originMadeAt = ownNow - ageMs - transitMs + skewMs;
        const headers = { date: date(originMadeAt), ...(ageMs === 0 ? {} : { age: String(Math.floor(ageMs / 1000)) }) };
        // A Date of this instant beside an Age is taken for a gateway's: the next test.
        fc.pre(ageMs < 2000 || Math.abs(Date.parse(headers.date) - ownNow) > 2000);
        const isInstant = form.states === 'instant';
        const resolutionMs = isInstant ? form.resolutionMs : 1000;
        const endsAt = Math.ceil((originMadeAt + waitS * 1000) / resolutionMs) * resolutionMs;
        const meantMs = isInstant ? endsAt - originMadeAt - ageMs - transitMs : waitS * 1000 - ageMs - transitMs;
        const waitMs = waitOf({ ...headers, ...form.fields(isInstant ? endsAt : waitS) }, status, ownNow);
        if (meantMs > 0) {
          expect(waitMs).toBeGreaterThanOrEqual(meantMs);
          // The fractions of Date and Age, and the way of the response.
          expect(waitMs).toBeLessThanOrEqual(meantMs + 2000 + transitMs);
        } else expect(waitMs ?? 0).toBeLessThanOrEqual(2000 + transitMs);
      }),
      { numRuns: roundsOf({ check: 200, soak: 5000 }) },
    );
  });
});

describe('without a usable Date an instant is read by our clock', () => {
  it.each([undefined, '', 'yesterday', 'Sun, 31 Feb 2026 12:00:00 GMT', String(NOW - 60_000), '2026-11-01'])(
    'Date: %j',
    (text) => {
      const fields = text === undefined ? {} : { date: text };
      expect(waitOf({ ...fields, 'retry-after': date(NOW + 5000) })).toBe(5000);
      // The instant is the origin's: time in a cache does not move it.
      expect(waitOf({ ...fields, age: '3', 'retry-after': date(NOW + 5000) })).toBe(5000);
      expect(waitOf({ ...fields, age: '3', 'retry-after': '5' })).toBe(2000);
    },
  );
});

describe('with a Date that is days off', () => {
  const YEAR_S = 365 * DAY_S;
  it.each([-56 * YEAR_S, -2 * YEAR_S, -90 * DAY_S, -2 * DAY_S, 2 * DAY_S, 90 * DAY_S, 20 * YEAR_S])(
    '%i s: an instant near it is by the same clock, and one near ours is by ours',
    (offS) => {
      const wrongAt = NOW + offS * 1000;
      expect(waitOf({ date: date(wrongAt), 'retry-after': date(wrongAt + 5000) })).toBe(5000);
      expect(waitOf({ date: date(wrongAt), 'retry-after': date(NOW + 5000) })).toBe(5000);
      expect(waitOf({ date: date(wrongAt), ...quota(seconds(NOW + 5000)) })).toBe(5000);
      expect(waitOf({ date: date(wrongAt), ...quota(seconds(NOW - 5000)) })).toBeUndefined();
      expect(waitOf({ date: date(wrongAt), 'retry-after': '7' })).toBe(7000);
    },
  );
});

it('an instant that had passed by the Date is by our clock when that is nearer, and has passed otherwise', () => {
  expect(waitOf({ date: date(NOW + 3_600_000), ...quota(seconds(NOW + 5000)) })).toBe(5000);
  expect(waitOf({ date: date(NOW + 3_600_000), ...quota(seconds(NOW + 3_590_000)) })).toBeUndefined();
});

describe('Age', () => {
  it.each([
    ['40', 20_000],
    [' 40 ', 20_000],
    ['40, 50', 20_000],
    ['60', 0],
    ['61', undefined],
    ['99999999999999999999', undefined],
    ['-40', 60_000],
    ['40.5', 60_000],
    ['4e1', 60_000],
    ['soon', 60_000],
    ['', 60_000],
    [',40', 60_000],
  ])('%j leaves of 60 s %j ms', (age, leftMs) => {
    expect(waitOf({ age, 'retry-after': '60' })).toBe(leftMs);
    expect(waitOf({ age, ...quota('60') }, 200)).toBe(leftMs);
  });

  it('beside a Date of this instant, which a gateway in front of the cache wrote, does not shorten the wait until an instant', () => {
    expect(waitOf({ age: '40', date: date(NOW - 1000), 'retry-after': date(NOW + 60_000) })).toBe(61_000);
    expect(waitOf({ age: '40', date: date(NOW - 1000), 'retry-after': '60' })).toBe(20_000);
  });

  it('takes what remained of a window that has ended since for unknown, and keeps the policy', () => {
    const fields = { age: '40', ratelimit: '"a";r=0;t=30', 'ratelimit-policy': '"a";q=100;w=60' };
    const policy = { quota: 100, windowMs: 60_000, remaining: undefined, resetInMs: undefined };
    expect(classify(fields, 200).permitReport).toMatchObject({
      hint: { remaining: undefined, resetInMs: undefined, quotas: [policy] },
    });
    const running = { ...policy, remaining: 0, resetInMs: 10_000 };
    expect(classify({ ...fields, ratelimit: '"a";r=0;t=50' }, 200).permitReport).toMatchObject({
      hint: { remaining: 0, resetInMs: 10_000, quotas: [running] },
    });
  });
});

it('of two fields of one name the first counts, in any case of the name', () => {
  const headers = ['DATE', date(NOW + 60_000), 'date', date(NOW), 'Age', '0', 'AGE', '50'];
  const classifier = new ResponseClassifier({
    ...{ route: 'default', replicas: 1, clock: new ManualClock(NOW) },
    observe: () => undefined,
  });
  const fields = ['Retry-After', date(NOW + 65_000)];
  expect(classifier.classify({ status: 429, statusText: '', headers: [...headers, ...fields] }).statedWaitMs).toBe(
    5000,
  );
});
