/**
 * What rate-limit header fields state, for the operator (pure): values, never the text that the upstream sent, which may hold the access
 * token. Names are the upstream's too, so that only those that are made of words are shown. What a value means is known to its readers:
 * rate-limit-signal.ts, hinted-quotas.ts.
 */
import { formatInstant } from '../../platform/instant-text.ts';
import type { StatedFields, StatedFieldValue } from '../../telemetry/events.ts';
import { MAX_PARSED_LENGTH, readDate, readNumber } from '../../platform/rate-limit-fields/header-values.ts';
import { readDurationMs, readUsage, readWindowPairs } from './hinted-quotas.ts';
import { readNumericItems } from '../../platform/rate-limit-fields/structured-quotas.ts';

/** Names whose values may be credentials: neither is shown. */
const SENSITIVE_NAME = /auth|cookie|secret|session|signature|token$/i;
/** Further fields are left out. */
const MAX_STATED_FIELDS = 24;
const MAX_NAME_LENGTH = 64;
/** Words of letters, with short ones such as `10s` among them. A token, or a part of a JWT, is longer than any word. */
const NAME_OF_WORDS = /^(?:[a-z]{1,18}|[a-z0-9]{1,4})(?:[-_.](?:[a-z]{1,18}|[a-z0-9]{1,4}))*$/;

/** Whether a name may be shown: it can hold no token. */
export function isNameOfWords(lowerCaseName: string): boolean {
  return lowerCaseName.length <= MAX_NAME_LENGTH && NAME_OF_WORDS.test(lowerCaseName);
}

/**
 * The values of at most 24 fields, by their names in lower case; fields whose names suggest a credential are left out.
 * @param wallNow epoch milliseconds, for dates
 */
export function readStatedFields(fields: Iterable<readonly [string, string]>, wallNow: number): StatedFields {
  const shown = [...fields].filter(([name]) => !SENSITIVE_NAME.test(name)).slice(0, MAX_STATED_FIELDS);
  return Object.fromEntries(shown.map(([name, text]) => [name, readValue(text, wallNow)]));
}

/** The value for people: `12`, `r=0 t=30`, `not understood (431 characters)`. */
export function describeStatedValue(value: StatedFieldValue): string {
  if (typeof value !== 'object') return String(value);
  if ('unparsed' in value) return `not understood (${value.unparsed} characters)`;
  return value
    .map((item) =>
      Object.entries(item)
        .map(([name, number]) => `${name}=${number}`)
        .join(' '),
    )
    .join(', ');
}

function readValue(received: string, wallNow: number): StatedFieldValue {
  const text = received.length <= MAX_PARSED_LENGTH ? received.trim() : '';
  const number = readNumber(text);
  if (number !== undefined) return number;
  const at = readDate(text, wallNow);
  if (at !== undefined) return formatInstant(at);
  const durationMs = readDurationMs(text);
  if (durationMs !== undefined) return durationMs / 1000;
  const usage = readUsage(text);
  if (usage !== undefined) return [usage];
  const pairs = readWindowPairs(text);
  const items = pairs.length > 0 ? pairs : readNumericItems(text);
  return items.length > 0 ? items : { unparsed: received.length };
}
