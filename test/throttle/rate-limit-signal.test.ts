import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readHttpDate } from '../../src/http-date.ts';
import { readRateLimitSignal, type RateLimitSignal } from '../../src/throttle/rate-limit-signal.ts';

const NOW = Date.UTC(2026, 10, 1, 12, 0, 0);

function read(fields: Record<string, string>, status = 429): RateLimitSignal {
  return readRateLimitSignal(status, (name) => fields[name], NOW);
}

describe('Retry-After', () => {
  it.each([
    ['120', 120_000],
    [' 7 ', 7_000],
    ['0', 0],
    ['1.5', 1_500],
    ['Sun, 01 Nov 2026 12:00:30 GMT', 30_000],
    ['Sunday, 01-Nov-26 12:00:30 GMT', 30_000],
    ['Sun Nov  1 12:00:30 2026', 30_000],
    ['Sun, 01 Nov 2026 11:59:59 GMT', undefined],
    ['Sun, 31 Nov 2026 12:00:30 GMT', undefined],
    ['Sun, 01 Nov 2026 25:00:00 GMT', undefined],
    ['-5', undefined],
    ['soon', undefined],
    ['', undefined],
    ['1e9', undefined],
    ['99999999999', 366 * 24 * 3_600_000],
    ['99999999999999999999', 366 * 24 * 3_600_000],
    ['120, 120', undefined],
  ])('%j', (value, expected) => {
    expect(read({ 'retry-after': value }).statedWaitMs).toBe(expected);
  });

  it('wins over every other field', () => {
    const signal = read({ 'retry-after': '3', ratelimit: '"a";r=0;t=60', 'x-ratelimit-reset': '90' });
    expect(signal).toMatchObject({ statedWaitMs: 3_000, remaining: 0, resetInMs: 60_000 });
  });

  it('takes a two-digit year as the one at most 50 years ahead', () => {
    expect(readHttpDate('Sunday, 06-Nov-94 08:49:37 GMT', NOW)).toBe(Date.UTC(1994, 10, 6, 8, 49, 37));
    expect(readHttpDate('Sunday, 06-Nov-76 08:49:37 GMT', NOW)).toBe(Date.UTC(2076, 10, 6, 8, 49, 37));
  });
});

describe('what remains and until when', () => {
  it.each<[Record<string, string>, number | undefined, number | undefined]>([
    [{ ratelimit: '"burst";r=50;t=30' }, 50, 30_000],
    [{ ratelimit: '"burst";r=50;t=30, "daily";r=2;t=3600' }, 2, 3_600_000],
    [{ ratelimit: '"a";r=0;t=5, "b";r=0;t=9' }, 0, 9_000],
    [{ ratelimit: '"burst";r=4', 'ratelimit-policy': '"burst";q=100;w=60' }, 4, 60_000],
    [{ ratelimit: 'limit=10, remaining=0, reset=5' }, 0, 5_000],
    [{ 'ratelimit-limit': '10', 'ratelimit-remaining': '3', 'ratelimit-reset': '8' }, 3, 8_000],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': '8' }, 3, 8_000],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': `${NOW / 1000 + 20}` }, 3, 20_000],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': `${NOW + 250}` }, 3, 250],
    [{ 'x-rate-limit-remaining': '1', 'x-rate-limit-reset': '2' }, 1, 2_000],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': `${NOW / 1000 - 20}` }, 3, undefined],
    [{ ratelimit: '"burst;r=50', 'x-ratelimit-remaining': '3' }, 3, undefined],
    [{ ratelimit: '"burst";r=-1;t=4' }, undefined, undefined],
    [{ 'x-ratelimit-remaining': 'many', 'x-ratelimit-reset': 'later' }, undefined, undefined],
    [{}, undefined, undefined],
  ])('%j', (fields, remaining, resetInMs) => {
    expect(read(fields, 200)).toMatchObject({ statedWaitMs: undefined, remaining, resetInMs });
  });

  it('counts as a stated wait only on a 429 with nothing remaining', () => {
    const spent = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '8' };
    expect(read(spent).statedWaitMs).toBe(8_000);
    expect(read(spent, 503).statedWaitMs).toBeUndefined();
    expect(read({ ...spent, 'x-ratelimit-remaining': '1' }).statedWaitMs).toBeUndefined();
  });
});

it('keeps the fields as evidence, cut to 200 characters, and no others', () => {
  const long = '9'.repeat(5000);
  const signal = read({ 'x-ratelimit-limit': '10', 'retry-after': long, 'set-cookie': 'secret' });
  expect(signal.fields).toEqual({ 'x-ratelimit-limit': '10', 'retry-after': long.slice(0, 200) });
  expect(signal.statedWaitMs).toBeUndefined();
});

it('never throws on whatever a stranger sends, and every duration is finite and not negative', () => {
  const likely = fc.stringMatching(/^["a-z;=rtw0-9., :-]{0,40}$/);
  const value = fc.oneof(fc.string({ unit: 'binary' }), likely, fc.integer().map(String));
  const name = fc.constantFrom(
    'retry-after',
    'ratelimit',
    'ratelimit-policy',
    'x-ratelimit-remaining',
    'ratelimit-reset',
  );
  fc.assert(
    fc.property(fc.dictionary(name, value), fc.constantFrom(200, 429, 503), (fields, status) => {
      const signal = read(fields, status);
      for (const number of [signal.statedWaitMs, signal.remaining, signal.resetInMs])
        expect(number === undefined || (Number.isFinite(number) && number >= 0)).toBe(true);
    }),
    { numRuns: 1000 },
  );
});
