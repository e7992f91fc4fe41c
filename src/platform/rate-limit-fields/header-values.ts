/**
 * Reads numbers, instants and durations from the values of rate-limit header fields (pure). Anything else is undefined. All waits are
 * milliseconds from the making of the response (origin-clock.ts). What a field means is known to its readers: stated-wait.ts,
 * plain-quotas.ts, structured-quotas.ts.
 */
import { parseHttpDate } from '../http-date.ts';
import { msFromMaking, type MadeAt } from '../origin-clock.ts';

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

/** A greater number is epoch milliseconds. */
const EPOCH_MS_ABOVE = 1e12;

/**
 * The wait that a number states: a duration of at most a year, or else an instant in epoch seconds or epoch milliseconds.
 * @param unitMs unit of a duration, milliseconds
 */
export function waitMsOf(value: number | undefined, made: MadeAt, unitMs = 1000): number | undefined {
  if (value === undefined) return undefined;
  if (value * 1000 <= MAX_WAIT_MS) return value * unitMs;
  return plausibleWaitMs(msFromMaking(value > EPOCH_MS_ABOVE ? value : value * 1000, made));
}

/** The same for a field whose name says that it counts milliseconds. */
export function waitMsOfMilliseconds(value: number | undefined, made: MadeAt): number | undefined {
  return value === undefined || value <= MAX_WAIT_MS ? value : plausibleWaitMs(msFromMaking(value, made));
}

/** The wait that a number, an HTTP-date or an RFC 3339 instant with an offset states. */
export function readWaitMs(text: string | undefined, made: MadeAt, unitMs = 1000): number | undefined {
  const date = text === undefined ? undefined : readDate(text, made.ownAt);
  return date === undefined ? waitMsOf(readNumber(text), made, unitMs) : plausibleWaitMs(msFromMaking(date, made));
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
