/**
 * Reads numbers, instants and durations from the values of rate-limit header fields (pure). Anything else is undefined. What a field
 * means is known to its readers: stated-wait.ts, plain-quotas.ts, structured-quotas.ts.
 */
import { parseHttpDate } from '../http-date.ts';

/** Value of a response header field by its lower-case name, several lines joined by a comma; undefined when absent. */
export type ReadHeader = (lowerCaseName: string) => string | undefined;

/** Names that suggest a limit. */
export const LIMIT_RELATED_NAME = /limit|quota|throttl|retry|back-?off|remaining/i;

/** Longer values are not parsed: no real one is longer, and parsing them costs time. */
export const MAX_PARSED_LENGTH = 1000;
/** A longer wait is taken for an error. */
export const MAX_WAIT_MS = 366 * 24 * 3600 * 1000;

/** A number in decimal digits, not negative. */
export function readNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}(\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
}

/** The value of a structured field if it is a number and not negative. */
export function numberOrUndefined(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined;
}

export function positiveOrUndefined(value: number | undefined): number | undefined {
  return value !== undefined && value > 0 ? value : undefined;
}

/** Seconds as milliseconds; undefined when negative or longer than a year. */
export function secondsToMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : plausibleWaitMs(seconds * 1000);
}

/**
 * Milliseconds until a reset that is given as a duration, as epoch seconds or as epoch milliseconds. The three ranges do not overlap
 * for waits up to a year.
 * @param wallNow epoch milliseconds
 * @param unitMs unit of a duration, milliseconds
 */
export function resetInMsOf(value: number | undefined, wallNow: number, unitMs = 1000): number | undefined {
  if (value === undefined) return undefined;
  if (value * 1000 <= MAX_WAIT_MS) return value * unitMs;
  return plausibleWaitMs(value * 1000 - wallNow) ?? plausibleWaitMs(value - wallNow);
}

/** Milliseconds until an HTTP-date or an RFC 3339 instant with an offset; undefined when it has passed. */
export function readMsUntilDate(text: string, wallNow: number): number | undefined {
  const date = readDate(text, wallNow);
  return date === undefined ? undefined : plausibleWaitMs(date - wallNow);
}

/** Epoch milliseconds of an HTTP-date or an RFC 3339 instant with an offset. */
export function readDate(text: string, wallNow: number): number | undefined {
  return parseHttpDate(text, wallNow) ?? readTimestamp(text);
}

/** The wait if it is not negative and not longer than a year. */
function plausibleWaitMs(waitMs: number): number | undefined {
  return waitMs >= 0 && waitMs <= MAX_WAIT_MS ? waitMs : undefined;
}

const TIMESTAMP = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)$/;

function readTimestamp(text: string): number | undefined {
  const at = TIMESTAMP.test(text) ? Date.parse(text.replace(' ', 'T')) : NaN;
  return Number.isNaN(at) ? undefined : at;
}
