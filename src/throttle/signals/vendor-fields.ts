/**
 * The header fields in which vendors state request limits (pure): a rule for names that say what they state, and a table of the others,
 * one row for each quota. Only fields whose meaning and unit are documented are in the table, or the same in the source code of many
 * servers. A remainder of tokens, bytes, cost points, concurrent calls or calls free of charge does not limit requests.
 * hinted-quotas.ts reads them.
 */

/**
 * The lower-case names of the fields of one quota of one vendor; members that the vendor does not state are absent. A wait in a field whose
 * name does not end in a unit is seconds, epoch seconds, epoch milliseconds or a date, distinguished by size.
 */
export interface VendorQuotaFields {
  readonly vendor: string;
  readonly documentedIn: string;
  readonly limit?: string;
  readonly remaining?: string;
  readonly reset?: string;
  readonly retryAfter?: string;
  /** A field, or the documented length in milliseconds. */
  readonly window?: string | number;
  /** `39/40`: used calls and limit in one field. */
  readonly usage?: string;
  /** `1:1,2:120`: used calls and seconds of each window of `limit`, which is written likewise. */
  readonly counts?: string;
}

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;

/** A field whose name says what it states. */
export interface NamedField {
  /** Fields of one family state one quota. */
  readonly family: string;
  readonly meaning: 'limit' | 'remaining' | 'reset' | 'resetIn' | 'resetInMs' | 'retryAfter' | 'retryAfterMs';
  /** Undefined: the name states none. */
  readonly windowMs: number | undefined;
}

type Meaning = NamedField['meaning'];

const WAIT_SUFFIXES: Readonly<Record<string, Meaning>> = {
  'retry-after': 'retryAfter',
  'retry-after-seconds': 'retryAfter',
  'retry-after-ms': 'retryAfterMs',
  'retry-after-milliseconds': 'retryAfterMs',
};
const QUOTA_SUFFIXES: Readonly<Record<string, Meaning>> = {
  limit: 'limit',
  remaining: 'remaining',
  reset: 'reset',
  'reset-after': 'resetIn',
  'reset-seconds': 'resetIn',
  'reset-ms': 'resetInMs',
  'reset-milliseconds': 'resetInMs',
};
const UNIT_WINDOWS_MS = {
  requests: undefined,
  second: SECOND_MS,
  minute: 60 * SECOND_MS,
  minutely: 60 * SECOND_MS,
  hour: HOUR_MS,
  hourly: HOUR_MS,
  day: 24 * HOUR_MS,
  daily: 24 * HOUR_MS,
};

/** By what follows `ratelimit-` in the name: `remaining`, or with a unit `minute-remaining` and `remaining-minute`. */
const FIELDS_BY_SUFFIX = new Map<string, NamedField>();
for (const [suffix, meaning] of Object.entries({ ...WAIT_SUFFIXES, ...QUOTA_SUFFIXES }))
  FIELDS_BY_SUFFIX.set(suffix, { family: '', meaning, windowMs: undefined });
for (const [suffix, meaning] of Object.entries(QUOTA_SUFFIXES))
  for (const [family, windowMs] of Object.entries(UNIT_WINDOWS_MS))
    for (const name of [`${family}-${suffix}`, `${suffix}-${family}`])
      FIELDS_BY_SUFFIX.set(name, { family, meaning, windowMs });

/** Senders whose fields are documented to count all calls: the name of any other may count exports, searches, or what is free of charge. */
const FIELD_NAME = /^((?:x-(?:sentry-|contentful-)?|anthropic-)?)rate-?limit-([a-z-]+)$/;
/** Calls free of charge, as RapidAPI counts them: it accepts more. */
const FREE_CALLS = 'x-ratelimit-requests-';

/**
 * What a name in lower case says: a known sender or none, `rate-limit` or `ratelimit`, then limit, remaining, reset or retry-after, with a
 * usual unit. Fields of other senders need `throttle.hints`.
 */
export function parseFieldName(name: string): NamedField | undefined {
  const [, sender = '', suffix = ''] = FIELD_NAME.exec(name) ?? [];
  const field = FIELDS_BY_SUFFIX.get(suffix);
  if (field === undefined || name.startsWith(FREE_CALLS)) return undefined;
  return { ...field, family: `${sender}${field.family}` };
}

/** In order of precedence for a stated wait. */
export const VENDOR_QUOTAS: readonly VendorQuotaFields[] = [
  {
    vendor: 'BigCommerce',
    documentedIn: 'API rate limits',
    limit: 'x-rate-limit-requests-quota',
    remaining: 'x-rate-limit-requests-left',
    reset: 'x-rate-limit-time-reset-ms',
    window: 'x-rate-limit-time-window-ms',
  },
  ...['token', 'key'].map((part) => ({
    vendor: 'Trello',
    documentedIn: 'REST API rate limits',
    limit: `x-rate-limit-api-${part}-max`,
    remaining: `x-rate-limit-api-${part}-remaining`,
    window: `x-rate-limit-api-${part}-interval-ms`,
  })),
  {
    vendor: 'HubSpot',
    documentedIn: 'API usage guidelines, rate limit headers',
    limit: 'x-hubspot-ratelimit-max',
    remaining: 'x-hubspot-ratelimit-remaining',
    window: 'x-hubspot-ratelimit-interval-milliseconds',
  },
  {
    vendor: 'HubSpot',
    documentedIn: 'API usage guidelines, rate limit headers',
    limit: 'x-hubspot-ratelimit-daily',
    remaining: 'x-hubspot-ratelimit-daily-remaining',
  },
  { vendor: 'Contentful', documentedIn: 'API rate limits, headers', retryAfter: 'x-contentful-ratelimit-reset' },
  {
    vendor: 'Etsy',
    documentedIn: 'Open API rate limits',
    limit: 'x-limit-per-second',
    remaining: 'x-remaining-this-second',
    window: SECOND_MS,
  },
  { vendor: 'Etsy', documentedIn: 'Open API rate limits', limit: 'x-limit-per-day', remaining: 'x-remaining-today' },
  {
    vendor: 'Jira and Bitbucket Data Center',
    documentedIn: 'Improving instance stability with rate limiting',
    limit: 'x-ratelimit-fillrate',
    window: 'x-ratelimit-interval-seconds',
  },
  {
    vendor: 'Shopify',
    documentedIn: 'REST Admin API rate limits',
    usage: 'x-shopify-shop-api-call-limit',
  },
  {
    vendor: 'Salesforce',
    documentedIn: 'REST API, Limit Info header',
    usage: 'sforce-limit-info',
  },
  {
    vendor: 'Riot Games',
    documentedIn: 'Developer portal, rate limiting',
    limit: 'x-app-rate-limit',
    counts: 'x-app-rate-limit-count',
  },
];

/** The names of all fields of the table. */
export const VENDOR_FIELD_NAMES: readonly string[] = VENDOR_QUOTAS.flatMap((row) =>
  [row.limit, row.remaining, row.reset, row.retryAfter, row.window, row.usage, row.counts].filter(
    (field) => typeof field === 'string',
  ),
);
