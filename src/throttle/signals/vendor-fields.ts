/**
 * The header fields in which vendors state request limits (pure): a rule for names that say what they state, and a table of the others,
 * one row for each quota. Only fields whose meaning and
 * unit are documented are here, or the same in the source code of many servers. A remainder of tokens, bytes, cost points, concurrent calls
 * or calls free of charge does not limit requests. A window longer than an hour is left out where no reset is stated, since the rest of a
 * day's quota would be spread over a day. hinted-quotas.ts reads them.
 */

/** How a value is written. */
export type ValueForm =
  /** A number; for waits seconds, epoch seconds, epoch milliseconds or a date, distinguished by size. */
  | 'plain'
  | 'milliseconds'
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

/** A field whose name says what it states: one member of the quota that `family` names. */
export interface NamedField {
  readonly family: string;
  readonly meaning: 'limit' | 'remaining' | 'resetIn' | 'resetInMs' | 'retryAfter' | 'retryAfterMs';
  /** Undefined: the name states none, or a day, whose rest would be spread over the day. */
  readonly windowMs: number | undefined;
}

const FIELD_NAME =
  /^((?:[a-z]+-)*)rate-?limit-(?:(requests|second|minute|minutely|hour|hourly|day|daily)-)?(limit|remaining|reset|retry-after)(?:-(requests|second|minute|hour|day|seconds|ms))?$/;
/** What is no request, or is not limited. */
const OTHER_UNITS = /token|byte|point|cost|credit|concurren|complexity|graphql|free/;
/** Calls free of charge, as RapidAPI counts them: it accepts more. */
const FREE_CALLS = 'x-ratelimit-requests-';
const UNIT_WINDOWS_MS: Readonly<Record<string, number>> = {
  ...{ second: SECOND_MS, minute: 60 * SECOND_MS, minutely: 60 * SECOND_MS, hour: HOUR_MS, hourly: HOUR_MS },
};
const MEANINGS = { limit: 'limit', remaining: 'remaining', reset: 'resetIn', 'retry-after': 'retryAfter' } as const;

/** What a name in lower case says: `rate-limit` or `ratelimit`, then limit, remaining, reset or retry-after, with a usual unit. */
export function parseFieldName(name: string): NamedField | undefined {
  const [, sender = '', before = '', part = '', after = ''] = FIELD_NAME.exec(name) ?? [];
  const meaning = MEANINGS[part as keyof typeof MEANINGS] as NamedField['meaning'] | undefined;
  if (meaning === undefined || OTHER_UNITS.test(sender) || name.startsWith(FREE_CALLS)) return undefined;
  const isWait = meaning === 'resetIn' || meaning === 'retryAfter';
  if (!isWait && (after === 'ms' || after === 'seconds')) return undefined;
  const unit = before === '' ? after.replace(/^(?:ms|seconds)$/, '') : before;
  return {
    family: `${sender}${unit}`,
    meaning: isWait && after === 'ms' ? `${meaning}Ms` : meaning,
    windowMs: UNIT_WINDOWS_MS[unit],
  };
}

/** In order of precedence for a stated wait. */
export const VENDOR_QUOTAS: readonly VendorQuotaFields[] = [
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
  { vendor: 'Contentful', documentedIn: 'API rate limits, headers', retryAfter: 'x-contentful-ratelimit-reset' },
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
