import { describe, expect, test } from 'vitest';
import { readMadeAt } from '../../src/platform/origin-clock.ts';
import { readResetMs, readRetryAfterMs } from '../../src/platform/rate-limit-fields/stated-wait.ts';

const NOW = Date.UTC(2026, 10, 6, 8, 49, 7);

describe('Retry-After', () => {
  test.each<[string | undefined, number | undefined]>([
    ['120', 120_000],
    ['0', 0],
    ['1.5', 1_500],
    ['Fri, 06 Nov 2026 08:49:37 GMT', 30_000],
    ['Friday, 06-Nov-26 08:49:37 GMT', 30_000],
    ['Fri Nov  6 08:49:37 2026', 30_000],
    ['Fri, 06 Nov 2026 08:00:00 GMT', undefined],
    [undefined, undefined],
    ['-5', undefined],
    ['soon', undefined],
    ['Sun, tomorrow', undefined],
    ['1, 2', undefined],
  ])('%j', (text, expected) => {
    const readHeader = (name: string) => (name === 'retry-after' ? text : undefined);
    expect(readRetryAfterMs(readHeader, readMadeAt(undefined, undefined, NOW))).toBe(expected);
  });
});

describe('the reset of a quota', () => {
  const seconds = String(NOW / 1000 + 40);
  test.each<[Record<string, string>, number | undefined]>([
    [{ 'x-ratelimit-reset': seconds }, 40_000],
    [{ 'x-ratelimit-reset': '40' }, 40_000],
    [{ 'x-ratelimit-reset': String(NOW + 40_000) }, 40_000],
    [{ 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': seconds }, 40_000],
    [{ 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': seconds }, 40_000],
    [{ 'ratelimit-reset': '40' }, 40_000],
    [{ ratelimit: '"default";r=0;t=40' }, 40_000],
    [{ ratelimit: 'limit=10, remaining=0, reset=40' }, 40_000],
    [{ ratelimit: '"hour";r=0', 'ratelimit-policy': '"hour";q=10;w=40' }, 40_000],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': seconds }, undefined],
    [{ 'x-ratelimit-remaining': '0' }, undefined],
    [{ 'x-ratelimit-reset': 'soon' }, undefined],
    [{ 'x-ratelimit-reset': String(NOW / 1000 - 40) }, undefined],
    [{}, undefined],
  ])('%j', (fields, expected) => {
    expect(readResetMs((name) => fields[name], readMadeAt(undefined, undefined, NOW))).toBe(expected);
  });
});
