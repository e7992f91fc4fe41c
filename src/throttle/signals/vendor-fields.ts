/**
 * The header fields in which vendors state request limits (pure): a rule for names that say what they state, and a table of the others,
 * one row for each quota. Only fields whose meaning and unit are documented are in the table, or the same in the source code of many
 * servers. A remainder of tokens, bytes, cost points, concurrent calls or calls free of charge does not limit requests.
 * hinted-quotas.ts reads them.
 */
import type { StatedQuota } from '../../platform/rate-limit-fields/stated-quota.ts';

/** What each meaning states of a quota. A name that ends in `Ms` counts milliseconds, `resetIn`, `retryAfter` and `window` count seconds. */
export const QUOTA_MEMBERS = {
  remaining: 'remaining',
  limit: 'quota',
  resetAt: 'resetInMs',
  resetIn: 'resetInMs',
  resetInMs: 'resetInMs',
  retryAfter: 'waitMs',
  retryAfterMs: 'waitMs',
  window: 'windowMs',
  windowMs: 'windowMs',
} as const satisfies Record<string, keyof StatedQuota | 'waitMs'>;

export type HintMeaning = keyof typeof QUOTA_MEMBERS;

/** What the fields of one quota of one vendor mean, by their lower-case names. */
export interface VendorQuotaFields {
  readonly vendor: string;
  readonly documentedIn: string;
  readonly fields: Readonly<Record<string, HintMeaning>>;
  /** Where it is documented, and in no field. */
  readonly windowMs?: number;
  /** A field with `39/40`: used calls and limit. */
  readonly usage?: string;
  /** Fields with `20:1,100:120` and `1:1,2:120`: the limits and the used calls, each with the seconds of its window. */
  readonly windows?: { readonly limits: string; readonly counts: string };
}

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;

/** A field whose name says what it states. */
export interface NamedField {
  /** Fields of one family state one quota. */
  readonly family: string;
  readonly meaning: HintMeaning | 'reset';
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
    fields: {
      'x-rate-limit-requests-quota': 'limit',
      'x-rate-limit-requests-left': 'remaining',
      'x-rate-limit-time-reset-ms': 'resetInMs',
      'x-rate-limit-time-window-ms': 'windowMs',
    },
  },
  ...['token', 'key'].map((part): VendorQuotaFields => ({
    vendor: 'Trello',
    documentedIn: 'REST API rate limits',
    fields: {
      [`x-rate-limit-api-${part}-max`]: 'limit',
      [`x-rate-limit-api-${part}-remaining`]: 'remaining',
      [`x-rate-limit-api-${part}-interval-ms`]: 'windowMs',
    },
  })),
  {
    vendor: 'HubSpot',
    documentedIn: 'API usage guidelines, rate limit headers',
    fields: {
      'x-hubspot-ratelimit-max': 'limit',
      'x-hubspot-ratelimit-remaining': 'remaining',
      'x-hubspot-ratelimit-interval-milliseconds': 'windowMs',
    },
  },
  {
    vendor: 'HubSpot',
    documentedIn: 'API usage guidelines, rate limit headers',
    fields: { 'x-hubspot-ratelimit-daily': 'limit', 'x-hubspot-ratelimit-daily-remaining': 'remaining' },
  },
  {
    vendor: 'Contentful',
    documentedIn: 'API rate limits, headers',
    fields: { 'x-contentful-ratelimit-reset': 'retryAfter' },
  },
  {
    vendor: 'Etsy',
    documentedIn: 'Open API rate limits',
    fields: { 'x-limit-per-second': 'limit', 'x-remaining-this-second': 'remaining' },
    windowMs: SECOND_MS,
  },
  {
    vendor: 'Etsy',
    documentedIn: 'Open API rate limits',
    fields: { 'x-limit-per-day': 'limit', 'x-remaining-today': 'remaining' },
  },
  {
    vendor: 'Jira and Bitbucket Data Center',
    documentedIn: 'Improving instance stability with rate limiting',
    fields: { 'x-ratelimit-fillrate': 'limit', 'x-ratelimit-interval-seconds': 'window' },
  },
  {
    vendor: 'Shopify',
    documentedIn: 'REST Admin API rate limits',
    fields: {},
    usage: 'x-shopify-shop-api-call-limit',
  },
  {
    vendor: 'Salesforce',
    documentedIn: 'REST API, Limit Info header',
    fields: {},
    usage: 'sforce-limit-info',
  },
  {
    vendor: 'Riot Games',
    documentedIn: 'Developer portal, rate limiting',
    fields: {},
    windows: { limits: 'x-app-rate-limit', counts: 'x-app-rate-limit-count' },
  },
];

/** The names of all fields of the table. */
export const VENDOR_FIELD_NAMES: readonly string[] = VENDOR_QUOTAS.flatMap(({ fields, usage, windows }) =>
  [...Object.keys(fields), usage, windows?.limits, windows?.counts].filter((name) => name !== undefined),
);
