import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readMadeAt } from '../../../src/platform/origin-clock.ts';
import { parseHttpDate } from '../../../src/platform/http-date.ts';
import {
  hasExhaustedQuota,
  readRateLimitSignal,
  type RateLimitSignal,
} from '../../../src/throttle/signals/rate-limit-signal.ts';
import type { StatedQuota } from '../../../src/platform/rate-limit-fields/stated-quota.ts';
import { anyCodePoint } from '../../support/code-points.ts';

const NOW = Date.UTC(2026, 10, 1, 12, 0, 0);

function read(fields: Record<string, string>, status = 429): RateLimitSignal {
  return readRateLimitSignal(status, new Map(Object.entries(fields)), readMadeAt(fields.date, fields.age, NOW));
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
    ['31622400', 366 * 24 * 3_600_000],
    ['31622401', undefined],
    ['99999999999', undefined],
    ['99999999999999999999', undefined],
    [`${NOW / 1000 + 30}`, 30_000],
    [`${NOW / 1000 - 30}`, undefined],
    [`${NOW + 1234}`, 1234],
    [`${NOW - 1234}`, undefined],
    [`${NOW / 1000 + 2}.5`, 2500],
    ['120, 120', undefined],
    ['2026-11-01T12:00:30Z', 30_000],
    ['2026-11-01T14:00:30+02:00', 30_000],
    ['2026-13-01T12:00:30Z', undefined],
  ])('%j', (value, expected) => {
    expect(read({ 'retry-after': value }).statedWaitMs).toBe(expected);
  });

  it('takes precedence over every other field', () => {
    const signal = read({ 'retry-after': '3', ratelimit: '"a";r=0;t=60', 'x-ratelimit-reset': '90' });
    expect(signal).toMatchObject({ statedWaitMs: 3_000, remaining: 0, resetInMs: 60_000 });
  });

  it.each(['retry-after-ms', 'x-ms-retry-after-ms'])(
    'without a valid Retry-After, %s is read in milliseconds',
    (name) => {
      expect(read({ [name]: '250' }).statedWaitMs).toBe(250);
      expect(read({ [name]: '250', 'retry-after': 'soon' }).statedWaitMs).toBe(250);
      expect(read({ [name]: '250', 'retry-after': '1' }).statedWaitMs).toBe(1000);
      expect(read({ [name]: '999999999999999' }).statedWaitMs).toBeUndefined();
      expect(read({ [name]: `${NOW + 4000}` }).statedWaitMs).toBe(4000);
      expect(read({ [name]: '-1' }).statedWaitMs).toBeUndefined();
    },
  );

  it('takes a two-digit year as the one at most 50 years ahead', () => {
    expect(parseHttpDate('Sunday, 06-Nov-94 08:49:37 GMT', NOW)).toBe(Date.UTC(1994, 10, 6, 8, 49, 37));
    expect(parseHttpDate('Sunday, 06-Nov-76 08:49:37 GMT', NOW)).toBe(Date.UTC(2076, 10, 6, 8, 49, 37));
  });
});

describe('remaining calls and reset', () => {
  it.each<[Record<string, string>, number | undefined, number | undefined]>([
    [{ ratelimit: '"burst";r=50;t=30' }, 50, 30_000],
    [{ ratelimit: '"burst";r=50;t=30, "daily";r=2;t=3600' }, 2, 3_600_000],
    [{ ratelimit: '"a";r=0;t=5, "b";r=0;t=9' }, 0, 9_000],
    [{ ratelimit: '"a";r=0, "b";r=0;t=9', 'ratelimit-policy': '"a";q=9;w=60' }, 0, 60_000],
    [{ ratelimit: '"burst";r=4', 'ratelimit-policy': '"burst";q=100;w=60' }, 4, 60_000],
    [{ ratelimit: 'limit=10, remaining=0, reset=5' }, 0, 5_000],
    [{ 'ratelimit-limit': '10', 'ratelimit-remaining': '3', 'ratelimit-reset': '8' }, 3, 8_000],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': '8' }, 3, 8_000],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': `${NOW / 1000 + 20}` }, 3, 20_000],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': `${NOW + 250}` }, 3, 250],
    [{ 'x-rate-limit-remaining': '1', 'x-rate-limit-reset': '2' }, 1, 2_000],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': `${NOW / 1000 - 20}` }, 3, undefined],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': 'Sun, 01 Nov 2026 12:00:30 GMT' }, 3, 30_000],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': '2026-11-01T12:00:30.5Z' }, 3, 30_500],
    [{ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset-after': '1.25', 'x-ratelimit-reset': '9' }, 3, 1_250],
    [{ 'ratelimit-limit': '100, 100;w=60', 'ratelimit-remaining': '3' }, 3, undefined],
    [{ 'x-ratelimit-limit-minute': '9', 'x-ratelimit-remaining-minute': '3' }, 3, undefined],
    [{ ratelimit: '"big";r=9000000;t=60', 'ratelimit-policy': '"big";q=9;qu="content-bytes"' }, undefined, undefined],
    [{ ratelimit: '"burst;r=50', 'x-ratelimit-remaining': '3' }, 3, undefined],
    [{ ratelimit: '"burst";r=-1;t=4' }, undefined, undefined],
    [{ 'x-ratelimit-remaining': 'many', 'x-ratelimit-reset': 'later' }, undefined, undefined],
    [{}, undefined, undefined],
  ])('%j', (fields, remaining, resetInMs) => {
    expect(read(fields, 200)).toMatchObject({ statedWaitMs: undefined, remaining, resetInMs });
  });

  it('the reset is a stated wait only on a 429 or 403 with nothing remaining', () => {
    const spent = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '8' };
    expect(read(spent).statedWaitMs).toBe(8_000);
    expect(read(spent, 403).statedWaitMs).toBe(8_000);
    expect(read(spent, 503).statedWaitMs).toBeUndefined();
    expect(read(spent, 200).statedWaitMs).toBeUndefined();
    expect(read({ ...spent, 'x-ratelimit-remaining': '1' }).statedWaitMs).toBeUndefined();
  });
});

it('parses no value of thousands of characters', () => {
  expect(read({ 'retry-after': '9'.repeat(5000) }).statedWaitMs).toBeUndefined();
});

/** The stated numbers. */
function statedOf({ field: _, ...numbers }: StatedQuota): StatedQuota {
  return Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined));
}

describe('the quotas', () => {
  const minute = { quota: 100, windowMs: 60_000 };
  const day = { quota: 1000, windowMs: 86_400_000 };

  it.each<[string, Record<string, string>, StatedQuota[]]>([
    ['nothing', {}, []],
    ['a policy', { 'ratelimit-policy': '"a";q=100;w=60' }, [minute]],
    ['policies', { 'ratelimit-policy': '"a";q=100;w=60,"b";q=1000;w=86400' }, [minute, day]],
    [
      'policies and limits, joined by name',
      { 'ratelimit-policy': '"a";q=100;w=60, "b";q=1000;w=86400', ratelimit: '"b";r=50;t=30' },
      [{ ...day, remaining: 50, resetInMs: 30_000 }, minute],
    ],
    ['a limit without its policy', { ratelimit: '"a";r=50;t=30' }, [{ remaining: 50, resetInMs: 30_000 }]],
    ['names as tokens', { 'ratelimit-policy': 'a;q=100;w=60', ratelimit: 'a;r=5' }, [{ ...minute, remaining: 5 }]],
    ['a policy without a window', { 'ratelimit-policy': '"a";q=100' }, [{ quota: 100 }]],
    ['requests by name', { 'ratelimit-policy': '"a";q=100;w=60;qu="requests"' }, [minute]],
    ['bytes', { 'ratelimit-policy': '"a";q=100;w=60;qu="content-bytes"', ratelimit: '"a";r=0;t=5' }, []],
    ['concurrent requests', { 'ratelimit-policy': '"a";q=10;qu="concurrent-requests"', ratelimit: '"a";r=0' }, []],
    ['an unknown unit', { 'ratelimit-policy': '"a";q=10;w=9;qu=coins' }, []],
    [
      'a partition',
      { 'ratelimit-policy': '"a";q=100;w=60;pk=:YQ==:', ratelimit: '"a";r=9;t=3;pk=:YQ==:' },
      [{ ...minute, remaining: 9, resetInMs: 3000 }],
    ],
    [
      'express-rate-limit 8, which names the partition in one of the fields',
      {
        'ratelimit-policy': '"2-in-1min"; q=100; w=60; pk=:MTJjYTE3YjQ5YWYy:',
        ratelimit: '"2-in-1min"; r=0; t=60',
        'retry-after': '60',
      },
      [{ ...minute, remaining: 0, resetInMs: 60_000 }],
    ],
    ['a window of 0 s', { 'ratelimit-policy': '"a";q=100;w=0' }, [{ quota: 100 }]],
    ['a quota of 0', { 'ratelimit-policy': '"a";q=0;w=60' }, [{ windowMs: 60_000 }]],
    ['an inner list', { 'ratelimit-policy': '("a" "b");q=5' }, []],
    ['policies of draft 06', { 'ratelimit-policy': '100;w=60;comment="x", 1000;w=86400' }, [minute, day]],
    [
      'draft 07',
      { 'ratelimit-policy': '100;w=60', ratelimit: 'limit=100, remaining=7, reset=5' },
      [{ ...minute, remaining: 7, resetInMs: 5000 }],
    ],
    [
      'drafts 03 to 06',
      { 'ratelimit-limit': '100, 100;w=60;burst=5, 1000;w=86400', 'ratelimit-remaining': '7', 'ratelimit-reset': '5' },
      [{ ...minute, remaining: 7, resetInMs: 5000 }, day],
    ],
    [
      'Envoy’s names',
      { 'x-ratelimit-limit': '100, 100;w=60;name="per-ip"', 'x-ratelimit-remaining': '7', 'x-ratelimit-reset': '5' },
      [{ ...minute, remaining: 7, resetInMs: 5000 }],
    ],
    ['X-RateLimit', { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '7' }, [{ quota: 100, remaining: 7 }]],
    [
      'X-Rate-Limit',
      { 'x-rate-limit-limit': '100', 'x-rate-limit-reset-after': '7' },
      [{ quota: 100, resetInMs: 7000 }],
    ],
    [
      'Kong, which states one quota twice',
      {
        'ratelimit-limit': '100',
        'ratelimit-remaining': '7',
        'ratelimit-reset': '5',
        'x-ratelimit-limit-minute': '100',
        'x-ratelimit-remaining-minute': '7',
        'x-ratelimit-limit-day': '1000',
        'x-ratelimit-remaining-day': '70',
      },
      [
        { ...minute, remaining: 7, resetInMs: 5000 },
        { ...day, remaining: 70 },
      ],
    ],
    [
      'the same in two families, one with an epoch',
      {
        'ratelimit-limit': '100',
        'ratelimit-remaining': '7',
        'ratelimit-reset': '6',
        'x-ratelimit-limit': '100',
        'x-ratelimit-remaining': '7',
        'x-ratelimit-reset': String(NOW / 1000 + 5),
      },
      [{ quota: 100, remaining: 7, resetInMs: 6000 }],
    ],
    [
      'two quotas of one size',
      { 'ratelimit-policy': '"a";q=100;w=60, "b";q=100;w=86400' },
      [minute, { quota: 100, windowMs: 86_400_000 }],
    ],
    ['numbers with words', { 'x-ratelimit-limit': '100 per minute', 'x-ratelimit-remaining': 'few' }, []],
  ])('%s', (_, fields, expected) => {
    expect(read(fields, 200).quotas.map(statedOf)).toEqual(expected);
  });

  it.each<[Record<string, string>, string[]]>([
    [{ 'ratelimit-policy': '"a";q=100;w=60, "b";q=5;w=1', ratelimit: '"a";r=5' }, ['ratelimit', 'ratelimit-policy']],
    [{ ratelimit: 'limit=100, remaining=7, reset=5' }, ['ratelimit']],
    [{ 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '7' }, ['x-ratelimit-remaining']],
    [{ 'ratelimit-limit': '100, 100;w=60, 9;w=1' }, ['ratelimit-limit', 'ratelimit-limit']],
    [{ 'x-ratelimit-limit-day': '9', 'x-ratelimit-remaining-day': '0' }, ['x-ratelimit-remaining-day']],
    [{ 'anthropic-ratelimit-requests-remaining': '4' }, ['anthropic-ratelimit-requests-remaining']],
    [{ 'x-remaining-today': '4', 'x-limit-per-day': '9' }, ['x-remaining-today']],
    [{ 'sforce-limit-info': 'api-usage=18/5000' }, ['sforce-limit-info']],
    [{ 'x-app-rate-limit': '20:1', 'x-app-rate-limit-count': '1:1' }, ['x-app-rate-limit-count']],
  ])('name the field that states the remainder, or else the quota: %o', (fields, expected) => {
    expect(read(fields, 200).quotas.map(({ field }) => field)).toEqual(expected);
  });

  it('are 8 at most', () => {
    const policy = Array.from({ length: 20 }, (_, at) => `"p${at}";q=${at + 1};w=60`).join(',');
    expect(read({ 'ratelimit-policy': policy }).quotas).toHaveLength(8);
  });

  it('are exhausted when one of them is', () => {
    const spent = { 'x-ratelimit-limit-day': '9', 'x-ratelimit-remaining-day': '0' };
    expect(hasExhaustedQuota(read({ ...spent, ratelimit: '"a";r=5;t=5' }))).toBe(true);
    expect(hasExhaustedQuota(read({ ratelimit: '"a";r=5;t=5' }))).toBe(false);
    expect(hasExhaustedQuota(read({ 'x-ratelimit-reset': '5' }))).toBe(false);
  });
});

describe('with arbitrary header fields', () => {
  const similar = fc.stringMatching(/^["a-z;=rtwq0-9., :-]{0,40}$/);
  const list = fc.array(
    fc.tuple(
      fc.constantFrom('"a"', 'b', '100', '("a" b)', '?1'),
      fc.constantFrom('q', 'w', 'r', 't', 'pk', 'qu', 'limit'),
    ),
    { maxLength: 12 },
  );
  const items = list.map((parts) => parts.map(([name, key], at) => `${name};${key}=${at * 7 - 3}`).join(', '));
  const value = fc.oneof(
    fc.string({ unit: anyCodePoint }),
    similar,
    items,
    fc.integer().map(String),
    fc.double().map(String),
  );
  const names = [
    'retry-after',
    'retry-after-ms',
    'ratelimit',
    'ratelimit-policy',
    'ratelimit-limit',
    'ratelimit-reset',
    'x-ratelimit-remaining',
    'x-ratelimit-limit',
    'x-ratelimit-reset-after',
    'x-ratelimit-limit-minute',
    'x-ratelimit-remaining-day',
    'x-rate-limit-reset',
  ];
  const headers = fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 12 });

  it('never throws, and every number is finite and not negative', () => {
    fc.assert(
      fc.property(headers, fc.constantFrom(200, 403, 429, 503), (fields, status) => {
        const { statedWaitMs, remaining, resetInMs, quotas } = read(fields, status);
        const numbers = [
          statedWaitMs,
          remaining,
          resetInMs,
          ...quotas.flatMap(({ field: _, ...numbers }) => Object.values<number | undefined>(numbers)),
        ];
        for (const number of numbers)
          expect(number ?? 0).toSatisfy((value: number) => Number.isFinite(value) && value >= 0);
        for (const { quota, windowMs } of quotas) expect([quota ?? 1, windowMs ?? 1]).not.toContain(0);
        expect(quotas.length).toBeLessThanOrEqual(8);
      }),
      { numRuns: 1000 },
    );
  });

  it('a valid Retry-After takes precedence', () => {
    fc.assert(
      fc.property(headers, fc.nat(100_000), (fields, seconds) => {
        expect(read({ ...fields, 'retry-after': String(seconds) }).statedWaitMs).toBe(seconds * 1000);
      }),
    );
  });
});
