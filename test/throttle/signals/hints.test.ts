/** Configured hints: a mapped field states the same as the standard field of that meaning. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readMadeAt } from '../../../src/platform/origin-clock.ts';
import { createFieldHints, HINT_MEANINGS } from '../../../src/throttle/signals/hinted-quotas.ts';
import type { HintMeaning } from '../../../src/throttle/signals/vendor-fields.ts';
import { readRateLimitSignal, type RateLimitSignal } from '../../../src/throttle/signals/rate-limit-signal.ts';

const WALL_NOW = Date.UTC(2026, 10, 1, 12);

function read(
  headers: Readonly<Record<string, string>>,
  hints: Readonly<Record<string, string>> = {},
): RateLimitSignal {
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const context = { isOwnPartition: () => true, resetUnitMs: 1000, hints: createFieldHints(hints) };
  return readRateLimitSignal(429, byName, readMadeAt(undefined, undefined, WALL_NOW), context);
}

function statedOf({ statedWaitMs, remaining, resetInMs, quotas }: RateLimitSignal): object {
  return { statedWaitMs, remaining, resetInMs, quotas: quotas.map(({ field: _, ...numbers }) => numbers) };
}

/** The standard field of each meaning that one has. */
const STANDARD: Partial<Record<HintMeaning, string>> = {
  remaining: 'x-ratelimit-remaining',
  limit: 'x-ratelimit-limit',
  resetIn: 'x-ratelimit-reset',
  retryAfter: 'retry-after',
  retryAfterMs: 'retry-after-ms',
};

const name = fc.stringMatching(/^X-[A-Za-z][A-Za-z0-9-]{1,20}$/).map((text) => `${text}-z`);
const meaning = fc.constantFrom(...(Object.keys(STANDARD) as HintMeaning[]));
const date = fc
  .integer({ min: 1, max: 86_400 })
  .map((seconds) => new Date(WALL_NOW + seconds * 1000))
  .chain((at) => fc.constantFrom(at.toUTCString(), at.toISOString()));
const value = fc.oneof(fc.nat(100_000).map(String), date, fc.string({ maxLength: 20 }));

describe('a mapped field', () => {
  it('states the same as the standard field of its meaning, in any case of its name', () => {
    const property = fc.property(name, meaning, value, fc.boolean(), (field, kind, text, isUpper) => {
      const sent = isUpper ? field.toUpperCase() : field.toLowerCase();
      // A number of days may be meant as a wait, a word as nothing.
      fc.pre(kind === 'limit' || kind === 'remaining' ? /^\d+$/.test(text) : true);
      fc.pre(!/\d\.\d|^\d+\.$/.test(text) && !/^(?:\d+(?:h|m|s|ms))+$/.test(text));
      const mapped = read({ [sent]: text }, { [field]: kind });
      expect(statedOf(mapped)).toEqual(statedOf(read({ [STANDARD[kind] ?? '']: text })));
    });
    fc.assert(property, { numRuns: 500 });
  });

  it('is read as its meaning says even if the sidecar reads the name otherwise', () => {
    const headers = { 'X-RateLimit-Remaining': '100', 'X-RateLimit-Limit': '3' };
    const hints = { 'x-ratelimit-remaining': 'limit', 'X-RATELIMIT-LIMIT': 'remaining' };
    expect(read(headers, hints)).toMatchObject({ remaining: 3, quotas: [{ quota: 100, remaining: 3 }] });
    expect(read({ 'Retry-After': '1500' }, { 'Retry-After': 'retryAfterMs' }).statedWaitMs).toBe(1500);
  });

  it('is named as the field that states the remainder', () => {
    const { quotas } = read({ 'X-Left': '3', 'X-Most': '9' }, { 'X-Most': 'limit', 'X-Left': 'remaining' });
    expect(quotas).toMatchObject([{ quota: 9, remaining: 3, field: 'x-left' }]);
  });

  it('takes precedence over a field that is read without a hint', () => {
    expect(read({ 'Retry-After': '9', 'X-Wait': '2' }, { 'X-Wait': 'retryAfter' }).statedWaitMs).toBe(2000);
  });

  it('states one quota together with the others', () => {
    const headers = { 'X-Left': '0', 'X-Most': '100', 'X-Per': '10', 'X-Again': `${WALL_NOW / 1000 + 4}` };
    const hints = { 'X-Left': 'remaining', 'X-Most': 'limit', 'X-Per': 'window', 'X-Again': 'resetAt' };
    expect(read(headers, hints)).toMatchObject({
      statedWaitMs: 4000,
      quotas: [{ quota: 100, windowMs: 10_000, remaining: 0, resetInMs: 4000 }],
    });
  });

  it.each([
    ['resetIn', '90', 90_000],
    ['resetIn', '6m0s', 360_000],
    ['resetIn', '120ms', 120],
    ['resetIn', `${WALL_NOW / 1000 + 7}`, 7000],
    ['resetInMs', '90', 90],
    ['resetAt', `${WALL_NOW + 1500}`, 1500],
    ['resetAt', '2026-11-01T12:00:05Z', 5000],
    ['resetAt', '90', undefined],
    ['resetAt', '2026-11-01T11:00:00Z', undefined],
    ['resetInMs', '1s', undefined],
  ])('as %s with %s is a reset in %s ms', (kind, text, expected) => {
    expect(read({ 'X-Back': text, 'X-Left': '0' }, { 'X-Back': kind, 'X-Left': 'remaining' }).resetInMs).toBe(expected);
  });

  it('never states a wait or a count that is negative, not finite or longer than a year', () => {
    const property = fc.property(
      fc.constantFrom(...HINT_MEANINGS),
      fc.oneof(value, fc.bigInt().map(String)),
      (kind, text) => {
        const { statedWaitMs, resetInMs, quotas } = read({ 'X-A': text }, { 'X-A': kind });
        const numbers = [
          statedWaitMs,
          resetInMs,
          ...quotas.flatMap(({ quota, windowMs, remaining, resetInMs: resetMs }) => [
            quota,
            windowMs,
            remaining,
            resetMs,
          ]),
        ];
        for (const number of numbers)
          if (number !== undefined) expect(number >= 0 && Number.isFinite(number)).toBe(true);
        expect(statedWaitMs ?? 0).toBeLessThanOrEqual(366 * 86_400_000);
      },
    );
    fc.assert(property, { numRuns: 500 });
  });
});

describe('the resolution of a stated wait', () => {
  it.each([
    [{ 'retry-after': '3' }, 1000],
    [{ 'retry-after': '0.25' }, 0],
    [{ 'retry-after-ms': '2000' }, 0],
    [{ 'retry-after': new Date(WALL_NOW + 4000).toUTCString() }, 1000],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': `${WALL_NOW + 1234}` }, 0],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '5' }, 1000],
    [{}, undefined],
  ])('of %j is %s ms', (headers, expected) => {
    expect(read(headers).waitResolutionMs).toBe(expected);
  });
});
