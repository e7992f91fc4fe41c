/** Each vendor's documented fields, with values as the vendor sends them, and the signal that they are. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readMadeAt } from '../../../src/platform/origin-clock.ts';
import { readRateLimitSignal, type RateLimitSignal } from '../../../src/throttle/signals/rate-limit-signal.ts';
import { VENDOR_FIELD_NAMES, VENDOR_QUOTAS } from '../../../src/throttle/signals/vendor-fields.ts';

const WALL_NOW = Date.UTC(2026, 10, 1, 12);
const MADE_AT = readMadeAt(undefined, undefined, WALL_NOW);
const EPOCH_MS = String(WALL_NOW + 30_000);

const DOCUMENTED: readonly (readonly [string, Readonly<Record<string, string>>, Partial<RateLimitSignal>])[] = [
  ['Bucket4j, OpenSky', { 'x-rate-limit-retry-after-seconds': '59' }, { statedWaitMs: 59_000 }],
  ['MailerLite, Symfony', { 'x-ratelimit-retry-after': '59' }, { statedWaitMs: 59_000 }],
  ['MailerLite, Symfony', { 'x-ratelimit-retry-after': String(WALL_NOW / 1000 + 59) }, { statedWaitMs: 59_000 }],
  ['WooCommerce', { 'ratelimit-retry-after': '28' }, { statedWaitMs: 28_000 }],
  ['CARTO Windshaft, servers on Bucket4j', { 'x-rate-limit-retry-after': '59' }, { statedWaitMs: 59_000 }],
  ...Object.entries({ minutely: 60_000, daily: undefined }).map(([unit, windowMs]): (typeof DOCUMENTED)[number] => [
    'Exact Online, CycleSoftware',
    {
      [`x-ratelimit-${unit}-limit`]: '60',
      [`x-ratelimit-${unit}-remaining`]: '0',
      [`x-ratelimit-${unit}-reset`]: EPOCH_MS,
    },
    { statedWaitMs: 30_000, remaining: 0, quotas: [{ quota: 60, windowMs, remaining: 0, resetInMs: 30_000 }] },
  ]),
  [
    'OpenAI, Groq, Azure OpenAI',
    {
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-reset-requests': '6m0s',
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '10m0s',
    },
    {
      statedWaitMs: undefined,
      remaining: 59,
      quotas: [{ quota: 60, windowMs: undefined, remaining: 59, resetInMs: 360_000 }],
    },
  ],
  [
    'Anthropic',
    {
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-remaining': '0',
      'anthropic-ratelimit-requests-reset': '2026-11-01T12:00:09Z',
      'anthropic-ratelimit-tokens-remaining': '0',
    },
    { statedWaitMs: 9000 },
  ],
  [
    'BigCommerce',
    {
      'x-rate-limit-requests-quota': '150',
      'x-rate-limit-requests-left': '35',
      'x-rate-limit-time-reset-ms': '15000',
      'x-rate-limit-time-window-ms': '30000',
    },
    { quotas: [{ quota: 150, windowMs: 30_000, remaining: 35, resetInMs: 15_000 }] },
  ],
  ...['token', 'key'].map((part): (typeof DOCUMENTED)[number] => [
    'Trello',
    {
      [`x-rate-limit-api-${part}-interval-ms`]: '10000',
      [`x-rate-limit-api-${part}-max`]: '100',
      [`x-rate-limit-api-${part}-remaining`]: '80',
    },
    { quotas: [{ quota: 100, windowMs: 10_000, remaining: 80, resetInMs: undefined }] },
  ]),
  [
    'HubSpot',
    {
      'x-hubspot-ratelimit-daily': '250000',
      'x-hubspot-ratelimit-daily-remaining': '249999',
      'x-hubspot-ratelimit-interval-milliseconds': '10000',
      'x-hubspot-ratelimit-max': '100',
      'x-hubspot-ratelimit-remaining': '98',
      'x-hubspot-ratelimit-secondly': '10',
    },
    {
      remaining: 98,
      quotas: [
        { quota: 100, windowMs: 10_000, remaining: 98, resetInMs: undefined },
        { quota: 250_000, windowMs: undefined, remaining: 249_999, resetInMs: undefined },
      ],
    },
  ],
  [
    'Contentful',
    {
      'x-contentful-ratelimit-hour-limit': '36000',
      'x-contentful-ratelimit-hour-remaining': '35883',
      'x-contentful-ratelimit-second-limit': '10',
      'x-contentful-ratelimit-second-remaining': '0',
      'x-contentful-ratelimit-reset': '1',
    },
    { statedWaitMs: 1000, remaining: 0 },
  ],
  [
    'Sentry',
    {
      'x-sentry-rate-limit-limit': '40',
      'x-sentry-rate-limit-remaining': '0',
      'x-sentry-rate-limit-reset': String(WALL_NOW / 1000 + 1),
      'x-sentry-rate-limit-concurrentremaining': '0',
    },
    { statedWaitMs: 1000 },
  ],
  [
    'Etsy',
    {
      'x-limit-per-second': '10',
      'x-remaining-this-second': '9',
      'x-limit-per-day': '10000',
      'x-remaining-today': '9998',
    },
    { remaining: 9, statedWaitMs: undefined },
  ],
  [
    'Jira and Bitbucket Data Center',
    { 'x-ratelimit-fillrate': '10', 'x-ratelimit-interval-seconds': '2' },
    { quotas: [{ quota: 10, windowMs: 2000, remaining: undefined, resetInMs: undefined }] },
  ],
  ['Shopify', { 'x-shopify-shop-api-call-limit': '39/40' }, { remaining: 1, quotas: [{ quota: 40, remaining: 1 }] }],
  ['Salesforce', { 'sforce-limit-info': 'api-usage=10018/100000' }, { remaining: 89_982 }],
  [
    'Riot Games',
    { 'x-app-rate-limit': '20:1,100:120', 'x-app-rate-limit-count': '1:1,2:120' },
    {
      quotas: [
        { quota: 20, windowMs: 1000, remaining: 19 },
        { quota: 100, windowMs: 120_000, remaining: 98 },
      ],
    },
  ],
];

function read(headers: Readonly<Record<string, string>>): RateLimitSignal {
  return readRateLimitSignal(429, new Map(Object.entries(headers)), MADE_AT);
}

it.each(DOCUMENTED)('reads the fields of %s', (_vendor, headers, expected) => {
  expect(read(headers)).toMatchObject(expected);
});

it('has a documented response for each vendor of the table', () => {
  const documented = DOCUMENTED.map(([vendor]) => vendor);
  expect(documented).toEqual(expect.arrayContaining(VENDOR_QUOTAS.map(({ vendor }) => vendor)));
});

const SENDERS = ['', 'x-', 'anthropic-', 'x-sentry-', 'x-contentful-'];
const UNITS = { second: 1000, minute: 60_000, minutely: 60_000, hour: 3_600_000, hourly: 3_600_000, daily: undefined };
const member = fc.record({
  sender: fc.constantFrom(...SENDERS),
  spelling: fc.constantFrom('ratelimit', 'rate-limit'),
  unit: fc.constantFrom(...(Object.keys(UNITS) as (keyof typeof UNITS)[])),
});

describe('a field whose name says what it states', () => {
  it('is read, for each known sender and each usual unit', () => {
    const property = fc.property(
      member,
      fc.nat(1000),
      fc.integer({ min: 1, max: 3000 }),
      (name, remaining, longestSeconds) => {
        const seconds = Math.min(longestSeconds, (UNITS[name.unit] ?? 86_400_000) / 1000);
        const family = `${name.sender}${name.spelling}-${name.unit}`;
        const headers = {
          [`${family}-limit`]: '1000',
          [`${family}-remaining`]: String(remaining),
          [`${family}-reset`]: String(seconds),
        };
        const quota = { quota: 1000, windowMs: UNITS[name.unit], remaining, resetInMs: seconds * 1000 };
        expect(read(headers)).toMatchObject({ remaining, quotas: [quota] });
        expect(read({ [`${name.sender}${name.spelling}-retry-after`]: String(seconds) })).toMatchObject({
          statedWaitMs: seconds * 1000,
        });
        expect(read({ [`${name.sender}${name.spelling}-retry-after-ms`]: String(seconds) })).toMatchObject({
          statedWaitMs: seconds,
        });
      },
    );
    fc.assert(property);
  });

  it('states seconds after reset-after', () => {
    const fields = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset-after': '1.5' };
    expect(read(fields)).toMatchObject({ statedWaitMs: 1500, remaining: 0 });
  });

  it('states no reset by a number that is longer than its window, or than an hour without one', () => {
    const window = fc.constantFrom(['', 3_600_000], ['minute-', 60_000], ['second-', 1000], [
      'day-',
      86_400_000,
    ] as const);
    const inMs = fc.property(window, fc.integer({ min: 1, max: 100_000 }), ([unit, windowMs], above) => {
      const seconds = String(windowMs / 1000 + above);
      const fields = { [`x-sentry-ratelimit-${unit}remaining`]: '0', [`x-sentry-ratelimit-${unit}reset`]: seconds };
      expect(read(fields)).toMatchObject({ statedWaitMs: undefined, remaining: 0 });
    });
    fc.assert(inMs);
  });

  const part = fc.constantFrom('limit', 'remaining', 'reset', 'reset-after', 'retry-after');
  const spelling = fc.constantFrom('ratelimit', 'rate-limit');
  it('of an unknown sender is not read: it may count only some calls', () => {
    const word = fc.stringMatching(/^[a-z]{3,10}$/);
    const name = fc.oneof(
      fc.tuple(word, spelling, part).map(([sender, rateLimit, one]) => `x-${sender}-${rateLimit}-${one}`),
      fc.tuple(word, spelling, part).map(([sender, rateLimit, one]) => `x-acme-${sender}-${rateLimit}-minute-${one}`),
      fc.tuple(word, spelling, part).map(([sender, rateLimit, one]) => `${sender}-${rateLimit}-${one}`),
      fc.constantFrom('x-export-ratelimit-remaining', 'x-trial-ratelimit-remaining', 'x-search-ratelimit-remaining'),
    );
    const isKnown = (field: string): boolean =>
      SENDERS.some((sender) => sender !== '' && field.startsWith(`${sender}rate`));
    fc.assert(
      fc.property(
        name.filter((field) => !isKnown(field)),
        fc.nat(3000).map(String),
        (field, text) => {
          for (const status of [200, 403, 429])
            expect(readRateLimitSignal(status, new Map([[field, text]]), MADE_AT)).toMatchObject({
              ...{ statedWaitMs: undefined, remaining: undefined, quotas: [] },
            });
        },
      ),
    );
  });

  it('is not read when it counts something else than calls, or is of something else than a rate', () => {
    const other = fc.constantFrom(
      'tokens',
      'inputtokens',
      'bytes',
      'points',
      'cost',
      'weight',
      'concurrency',
      'writes',
    );
    const word = fc.stringMatching(/^[a-z]{3,10}$/).filter((text) => !text.includes('limit'));
    const name = fc.oneof(
      fc.tuple(other, spelling, part).map(([unit, rateLimit, one]) => `x-${rateLimit}-${unit}-${one}`),
      fc.tuple(other, spelling, part).map(([unit, rateLimit, one]) => `x-${rateLimit}-${one}-${unit}`),
      part.map((one) => `x-ratelimit-requests-${one}`),
      fc.tuple(word, fc.constantFrom('reset', 'remaining', 'limit')).map(([noun, one]) => `x-${noun}-${one}`),
      fc.constantFrom('x-password-reset', 'x-ratelimited-reset', 'x-corporate-limit', 'x-rate-limiting-remaining'),
    );
    fc.assert(
      fc.property(name, fc.nat(100).map(String), (field, text) => {
        expect(read({ [field]: text })).toMatchObject({ statedWaitMs: undefined, remaining: undefined, quotas: [] });
      }),
    );
  });

  it('states the longest of several waits', () => {
    const fields = { 'x-rate-limit-retry-after': '0', 'x-rate-limit-retry-after-seconds': '60' };
    expect(read(fields)).toMatchObject({ statedWaitMs: 60_000 });
  });

  it('leaves the tightest quota to decide, also beside a field of the table', () => {
    const fields = { 'x-ratelimit-minute-remaining': '50', 'x-remaining-this-second': '0' };
    expect(read(fields)).toMatchObject({ remaining: 0 });
  });

  it.each([
    // All but GET (Fastly), POST (Imgur), weights with a reset in milliseconds (KuCoin).
    { 'fastly-ratelimit-remaining': '0', 'fastly-ratelimit-reset': EPOCH_MS },
    { 'x-post-rate-limit-remaining': '0', 'x-post-rate-limit-reset': '3000' },
    { 'gw-ratelimit-limit': '500', 'gw-ratelimit-remaining': '0', 'gw-ratelimit-reset': '3000' },
    {
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '6m0s',
      'x-ratelimit-limit-project-tokens': '9',
    },
    { 'x-ratelimit-requests-remaining': '0', 'x-ratelimit-rapid-free-plans-hard-limit-remaining': '0' },
    { 'x-ratelimitbysize-remaining-minute': '0', 'x-tokenlimit-remaining': '0', 'x-readratelimit-limit': '100,1000' },
    { 'anthropic-ratelimit-input-tokens-remaining': '0', 'anthropic-ratelimit-unified-reset': EPOCH_MS },
    { 'x-ms-ratelimit-remaining-subscription-reads': '0', 'x-ms-ratelimit-burst-remaining-xrm-requests': '0' },
    { 'x-method-rate-limit': '20:1', 'x-ratelimit-used': '5000', 'x-ratelimit-resource': 'core' },
    { 'x-ratelimit-retry-after-minute': '5', 'x-rate-limit-retry-after-nanoseconds': '59000000000' },
    { 'x-ratelimit-remaining-ms': '0', 'x-ratelimit-remaining-seconds': '0', 'x-daily-ratelimit-token-remaining': '0' },
  ])('states no limit of all calls in %j', (headers) => {
    expect(read(headers)).toMatchObject({ statedWaitMs: undefined, remaining: undefined, quotas: [] });
  });
});

it('names each field in lower case and once', () => {
  expect(VENDOR_FIELD_NAMES).toEqual([...new Set(VENDOR_FIELD_NAMES)]);
  for (const name of VENDOR_FIELD_NAMES) expect(name).toMatch(/^[a-z0-9-]+$/);
});

it('is listed in the documentation with every field', () => {
  const page = readFileSync(new URL('../../../docs/rate-limits.md', import.meta.url), 'utf8').toLowerCase();
  for (const name of VENDOR_FIELD_NAMES) expect(page).toContain(`\`${name}\``);
});

describe('a value in another form', () => {
  it.each(['', 'none', '-1', '1e3', '39/', '/40', '1:0', '20:', 'soon', '6m0', 'NaN', ' '])(
    'of %j states no wait and no exhausted quota',
    (text) => {
      for (const name of VENDOR_FIELD_NAMES) {
        const { statedWaitMs, remaining } = read({ [name]: text });
        expect([statedWaitMs, remaining]).toEqual([undefined, undefined]);
      }
    },
  );
});

it('holds no calls for a remainder up to which calls are free of charge', () => {
  const charged = { 'x-ratelimit-requests-remaining': '0', 'x-ratelimit-requests-reset': '2163603' };
  expect(read(charged)).toMatchObject({ statedWaitMs: undefined, remaining: undefined, quotas: [] });
});
