/**
 * Numbers, instants and durations as they stand in rate-limit fields (pure). Whatever is not plainly one of these is
 * undefined; which field means what is told by those that ask.
 */
import { parseHttpDate } from '../../platform/http-date.ts';

/** The value of a response field by its lower-case name, several lines joined by a comma; undefined when absent. */
export type ReadHeader = (lowerCaseName: string) => string | undefined;

/** A wait beyond a year is garbage. */
export const MAX_WAIT_MS = 366 * 24 * 3600 * 1000;

/** A number in plain decimal digits, not negative. */
export function readNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}(\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
}

/** What a structured field holds as a number, when it is one that can be a count or a duration. */
export function numberOrUndefined(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined;
}

/** A count of which something can be had, or the length of a window: above 0. */
export function positiveOrUndefined(value: number | undefined): number | undefined {
  return value !== undefined && value > 0 ? value : undefined;
}

/** Seconds as milliseconds; undefined beyond a year. */
export function secondsToMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : plausibleWaitMs(seconds * 1000);
}

/**
 * Milliseconds until a reset that is a number of units from now, epoch seconds or epoch milliseconds: their sizes do not
 * overlap below a year.
 * @param wallNow epoch milliseconds
 * @param unitMs what one unit means, milliseconds
 */
export function resetInMsOf(value: number | undefined, wallNow: number, unitMs = 1000): number | undefined {
  if (value === undefined) return undefined;
  if (value * 1000 <= MAX_WAIT_MS) return value * unitMs;
  return plausibleWaitMs(value * 1000 - wallNow) ?? plausibleWaitMs(value - wallNow);
}

/** Milliseconds until an HTTP-date, or an RFC 3339 instant with its offset; undefined when it has passed. */
export function readMsUntilDate(text: string, wallNow: number): number | undefined {
  const date = parseHttpDate(text, wallNow) ?? readTimestamp(text);
  return date === undefined ? undefined : plausibleWaitMs(date - wallNow);
}

/** A duration that can be waited for; undefined when it is negative or garbage. */
export function plausibleWaitMs(waitMs: number): number | undefined {
  return waitMs >= 0 && waitMs <= MAX_WAIT_MS ? waitMs : undefined;
}

const TIMESTAMP = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)$/;

function readTimestamp(text: string): number | undefined {
  const at = TIMESTAMP.test(text) ? Date.parse(text.replace(' ', 'T')) : NaN;
  return Number.isNaN(at) ? undefined : at;
}
