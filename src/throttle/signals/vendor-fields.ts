/**
 * The header fields in which known vendors state request limits (pure): one row for each quota, as data. Only fields whose meaning and
 * unit are documented are here, or the same in the source code of many servers. A remainder of tokens, bytes, cost points, concurrent calls
 * or calls free of charge does not limit requests. A window longer than an hour is left out where no reset is stated, since the rest of a
 * day's quota would be spread over a day. hinted-quotas.ts reads them.
 */

/** How a value is written. */
export type ValueForm =
  /** A number; for waits and resets seconds, epoch seconds, epoch milliseconds or a date, distinguished by size. */
  | 'plain'
  | 'milliseconds'
  /** `6m0s`, as Go prints durations. */
  | 'duration'
  /** `39/40`: used and limit. */
  | 'used/limit'
  /** `20:1,100:120`: calls and seconds of each window. */
  | 'calls:seconds';

/** A header field by its lower-case name; a text alone is of the plain form. */
export type VendorField = string | { readonly name: string; readonly form: ValueForm };

/** One quota of one vendor; members that the vendor does not state are absent. */
export interface VendorQuotaFields {
  readonly vendor: string;
  /** Where it is documented. */
  readonly documentedIn: string;
  readonly limit?: VendorField;
  readonly remaining?: VendorField;
  readonly reset?: VendorField;
  readonly retryAfter?: VendorField;
  /** A field, or the documented length in milliseconds. */
  readonly window?: VendorField | number;
  /** Used calls and limit in one field. */
  readonly usage?: VendorField;
  /** Used calls of each window of `limit`. */
  readonly counts?: VendorField;
}

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;

function inMs(name: string): VendorField {
  return { name, form: 'milliseconds' };
}

/** `X-RateLimit-Minutely-Limit`, `-Remaining` and `-Reset`, and the same for a day. */
const NAMED_UNITS: readonly VendorQuotaFields[] = Object.entries({
  minutely: 60 * SECOND_MS,
  daily: undefined,
}).map(([unit, windowMs]) => ({
  vendor: 'Exact Online, CycleSoftware',
  documentedIn: 'API limits',
  limit: `x-ratelimit-${unit}-limit`,
  remaining: `x-ratelimit-${unit}-remaining`,
  reset: `x-ratelimit-${unit}-reset`,
  ...(windowMs === undefined ? {} : { window: windowMs }),
}));

/** In order of precedence for a stated wait. */
export const VENDOR_QUOTAS: readonly VendorQuotaFields[] = [
  {
    vendor: 'Bucket4j, OpenSky',
    documentedIn: 'Bucket4j Spring Boot starter; OpenSky REST API, limitations',
    retryAfter: 'x-rate-limit-retry-after-seconds',
  },
  {
    vendor: 'CARTO Windshaft, servers on Bucket4j',
    documentedIn: 'their public source code',
    retryAfter: 'x-rate-limit-retry-after',
  },
  {
    vendor: 'MailerLite, Symfony',
    documentedIn: 'MailerLite API rate limits; Symfony rate limiter',
    retryAfter: 'x-ratelimit-retry-after',
  },
  { vendor: 'WooCommerce', documentedIn: 'Store API rate limiting', retryAfter: 'ratelimit-retry-after' },
  ...NAMED_UNITS,
  {
    vendor: 'OpenAI, Groq, Azure OpenAI',
    documentedIn: 'OpenAI rate limits, headers',
    limit: 'x-ratelimit-limit-requests',
    remaining: 'x-ratelimit-remaining-requests',
    reset: { name: 'x-ratelimit-reset-requests', form: 'duration' },
  },
  {
    vendor: 'Anthropic',
    documentedIn: 'API rate limits, response headers',
    limit: 'anthropic-ratelimit-requests-limit',
    remaining: 'anthropic-ratelimit-requests-remaining',
    reset: 'anthropic-ratelimit-requests-reset',
  },
  {
    vendor: 'BigCommerce',
    documentedIn: 'API rate limits',
    limit: 'x-rate-limit-requests-quota',
    remaining: 'x-rate-limit-requests-left',
    reset: inMs('x-rate-limit-time-reset-ms'),
    window: inMs('x-rate-limit-time-window-ms'),
  },
  ...['token', 'key'].map((part) => ({
    vendor: 'Trello',
    documentedIn: 'REST API rate limits',
    limit: `x-rate-limit-api-${part}-max`,
    remaining: `x-rate-limit-api-${part}-remaining`,
    window: inMs(`x-rate-limit-api-${part}-interval-ms`),
  })),
  {
    vendor: 'HubSpot',
    documentedIn: 'API usage guidelines, rate limit headers',
    limit: 'x-hubspot-ratelimit-max',
    remaining: 'x-hubspot-ratelimit-remaining',
    window: inMs('x-hubspot-ratelimit-interval-milliseconds'),
  },
  {
    vendor: 'HubSpot',
    documentedIn: 'API usage guidelines, rate limit headers',
    limit: 'x-hubspot-ratelimit-daily',
    remaining: 'x-hubspot-ratelimit-daily-remaining',
  },
  ...[
    { unit: 'second', windowMs: SECOND_MS },
    { unit: 'hour', windowMs: HOUR_MS },
  ].map(({ unit, windowMs }) => ({
    vendor: 'Contentful',
    documentedIn: 'API rate limits, headers',
    limit: `x-contentful-ratelimit-${unit}-limit`,
    remaining: `x-contentful-ratelimit-${unit}-remaining`,
    window: windowMs,
  })),
  { vendor: 'Contentful', documentedIn: 'API rate limits, headers', retryAfter: 'x-contentful-ratelimit-reset' },
  {
    vendor: 'Sentry',
    documentedIn: 'API rate limits',
    limit: 'x-sentry-rate-limit-limit',
    remaining: 'x-sentry-rate-limit-remaining',
    reset: 'x-sentry-rate-limit-reset',
  },
  {
    vendor: 'Etsy',
    documentedIn: 'Open API rate limits',
    limit: 'x-limit-per-second',
    remaining: 'x-remaining-this-second',
    window: SECOND_MS,
  },
  {
    vendor: 'Etsy',
    documentedIn: 'Open API rate limits',
    limit: 'x-limit-per-day',
    remaining: 'x-remaining-today',
  },
  {
    vendor: 'Jira and Bitbucket Data Center',
    documentedIn: 'Improving instance stability with rate limiting',
    limit: 'x-ratelimit-fillrate',
    window: 'x-ratelimit-interval-seconds',
  },
  {
    vendor: 'Shopify',
    documentedIn: 'REST Admin API rate limits',
    usage: { name: 'x-shopify-shop-api-call-limit', form: 'used/limit' },
  },
  {
    vendor: 'Salesforce',
    documentedIn: 'REST API, Limit Info header',
    usage: { name: 'sforce-limit-info', form: 'used/limit' },
  },
  {
    vendor: 'Riot Games',
    documentedIn: 'Developer portal, rate limiting',
    limit: { name: 'x-app-rate-limit', form: 'calls:seconds' },
    counts: { name: 'x-app-rate-limit-count', form: 'calls:seconds' },
  },
];

/** The lower-case name of a field. */
export function nameOfField(field: VendorField): string {
  return typeof field === 'string' ? field : field.name;
}

/** Lower-case names of all fields of a row. */
function fieldNamesOf({ limit, remaining, reset, retryAfter, window, usage, counts }: VendorQuotaFields): string[] {
  return [limit, remaining, reset, retryAfter, window, usage, counts].flatMap((field) =>
    field === undefined || typeof field === 'number' ? [] : [nameOfField(field)],
  );
}

/** Lower-case names of all fields of the table. */
export const VENDOR_FIELD_NAMES: readonly string[] = VENDOR_QUOTAS.flatMap(fieldNamesOf);
