/**
 * What a client asks of the sidecar itself, in header fields that begin with x-sidecar- and are never forwarded: its timeout, its
 * priority and its name. An invalid value is rejected, because ignoring it would do something that the client did not ask for.
 */
import type { Priority, QueueClass } from '../throttle/throttle.ts';
import type { HeaderValues } from './header-selector.ts';

export type PreferencesResult =
  | {
      readonly kind: 'read';
      /** Arrival to response head, milliseconds; undefined leaves it to the configuration. */
      readonly timeoutMs: number | undefined;
      readonly queueClass: QueueClass;
    }
  /** `reason` names the field and what is expected. */
  | { readonly kind: 'rejected'; readonly reason: string };

const TIMEOUT = 'x-sidecar-timeout-ms';
const PRIORITY = 'x-sidecar-priority';
export const CALLER = 'x-sidecar-caller';
export const CALLER_NAME = /^[!-~]{1,64}$/;

/** The names of the fields that are read, in lower case. */
export const PREFERENCE_HEADERS: readonly string[] = [TIMEOUT, PRIORITY, CALLER];

/** @param headers with the values of PREFERENCE_HEADERS */
export function readPreferences(headers: HeaderValues): PreferencesResult {
  // Values of repeated fields, joined as RFC 9110 §5.2 says, match none of the forms.
  const timeout = headers.get(TIMEOUT)?.join(', ');
  if (timeout !== undefined && !/^[1-9]\d{0,9}$/.test(timeout))
    return reject(`${TIMEOUT} is not a whole number of milliseconds above 0`);
  const priority = headers.get(PRIORITY)?.join(', ').toLowerCase() ?? 'normal';
  if (!isPriority(priority)) return reject(`${PRIORITY} is not one of high, normal and low`);
  const caller = headers.get(CALLER)?.join(', ') ?? '';
  if (headers.has(CALLER) && !CALLER_NAME.test(caller))
    return reject(`${CALLER} is not a name of 1 to 64 visible ASCII characters`);
  const timeoutMs = timeout === undefined ? undefined : Number(timeout);
  return { kind: 'read', timeoutMs, queueClass: { priority, caller } };
}

function isPriority(value: string): value is Priority {
  return value === 'high' || value === 'normal' || value === 'low';
}

function reject(reason: string): PreferencesResult {
  return { kind: 'rejected', reason };
}
