/**
 * Reads how long a response asks its client to wait (pure): Retry-After (RFC 9110 §10.2.3), and the tightest of the quotas that the standard
 * and the common X- header fields state. All waits begin when the response was made. Whether one is obeyed is decided by the callers.
 */
import type { MadeAt } from '../origin-clock.ts';
import { readNumber, readWaitMs, waitMsOfMilliseconds, type ReadHeader } from './header-values.ts';
import { HEADER_FAMILIES, readFamilyQuotas, readUnitQuotas } from './plain-quotas.ts';
import type { StatedQuota } from './stated-quota.ts';
import { readDictionaryQuota, readStructuredQuotas } from './structured-quotas.ts';

/** In milliseconds; read when there is no usable Retry-After. */
export const RETRY_AFTER_MS_HEADERS = ['retry-after-ms', 'x-ms-retry-after-ms'];

/** `Retry-After` (RFC 9110 §10.2.3) or its forms in milliseconds; undefined when absent, unreadable, in the past or longer than a year. */
export function readRetryAfterMs(readHeader: ReadHeader, made: MadeAt): number | undefined {
  let waitMs = readWaitMs(readHeader('retry-after'), made);
  for (const name of RETRY_AFTER_MS_HEADERS) waitMs ??= waitMsOfMilliseconds(readNumber(readHeader(name)), made);
  return waitMs;
}

type QuotaSources = readonly (readonly StatedQuota[])[];

/** By source, in order of precedence. @param resetUnitMs unit of a reset that is a duration, milliseconds */
export function readPlainQuotas(readHeader: ReadHeader, made: MadeAt, resetUnitMs = 1000): QuotaSources {
  const dictionary = readDictionaryQuota(readHeader('ratelimit'), made);
  return [
    dictionary === undefined ? [] : [dictionary],
    ...HEADER_FAMILIES.map((family) => readFamilyQuotas(readHeader, family, made, resetUnitMs)),
    readUnitQuotas(readHeader),
  ];
}

/** Without `t` the reset can be as far away as the policy's window is long. */
export function boundReset(quota: StatedQuota): StatedQuota {
  return quota.remaining === undefined ? quota : { ...quota, resetInMs: quota.resetInMs ?? quota.windowMs };
}

/** In the first source with a remaining count or a reset: the quota with fewest calls remaining, among equals the latest reset. */
export function selectTightest(sources: QuotaSources): StatedQuota {
  for (const quotas of sources) {
    const [first, ...rest] = quotas.filter(
      ({ remaining, resetInMs }) => remaining !== undefined || resetInMs !== undefined,
    );
    if (first !== undefined) return rest.reduce((one, other) => (isTighter(other, one) ? other : one), first);
  }
  return {};
}

function isTighter(one: StatedQuota, other: StatedQuota): boolean {
  const difference = (one.remaining ?? Infinity) - (other.remaining ?? Infinity);
  return difference < 0 || (one.remaining === other.remaining && (one.resetInMs ?? 0) > (other.resetInMs ?? 0));
}

/** Milliseconds until the reset of the tightest quota, unless calls remain: then the response is not due to a quota. */
export function readResetMs(readHeader: ReadHeader, made: MadeAt): number | undefined {
  const structured = readStructuredQuotas(readHeader('ratelimit'), readHeader('ratelimit-policy'), () => true);
  const sources = [structured.map(boundReset), ...readPlainQuotas(readHeader, made)];
  const { remaining = 0, resetInMs } = selectTightest(sources);
  return remaining === 0 ? resetInMs : undefined;
}
