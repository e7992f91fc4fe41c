/**
 * What a client asks of the sidecar itself, in header fields x-sidecar-*, which are never forwarded: timeout, priority and name. An invalid
 * value is rejected, because ignoring it would do something that the client did not ask for.
 */
import { SidecarError } from '../platform/errors.ts';
import type { Priority, QueueClass } from '../throttle/throttle.ts';
import type { RequestHead } from './request-head.ts';

export interface RequestPreferences {
  /** Arrival to response head, milliseconds; undefined leaves it to the configuration. */
  readonly timeoutMs: number | undefined;
  readonly queueClass: QueueClass;
}

const TIMEOUT = 'x-sidecar-timeout-ms';
const PRIORITY = 'x-sidecar-priority';
const CALLER = 'x-sidecar-caller';
export const CALLER_NAME = /^[!-~]{1,64}$/;

/** The preferences of a request without such a field. */
export const NO_PREFERENCES: RequestPreferences = {
  timeoutMs: undefined,
  queueClass: { priority: 'normal', caller: '' },
};

/** @returns the error that rejects an invalid value: it names the field and what is expected */
export function readPreferences({ timeouts, priorities, callers }: RequestHead): RequestPreferences | SidecarError {
  // Values of repeated fields, joined as RFC 9110 §5.2 says, match none of the forms.
  const timeout = timeouts.length === 0 ? undefined : timeouts.join(', ');
  if (timeout !== undefined && !/^[1-9]\d{0,9}$/.test(timeout))
    return new SidecarError('BAD_REQUEST', `${TIMEOUT} is not a whole number of milliseconds above 0`);
  const priority = priorities.length === 0 ? 'normal' : priorities.join(', ').toLowerCase();
  if (!isPriority(priority)) return new SidecarError('BAD_REQUEST', `${PRIORITY} is not one of high, normal and low`);
  const caller = callers.join(', ');
  if (callers.length > 0 && !CALLER_NAME.test(caller))
    return new SidecarError('BAD_REQUEST', `${CALLER} is not a name of 1 to 64 visible ASCII characters`);
  const timeoutMs = timeout === undefined ? undefined : Number(timeout);
  return { timeoutMs, queueClass: { priority, caller } };
}

function isPriority(value: string): value is Priority {
  return value === 'high' || value === 'normal' || value === 'low';
}
