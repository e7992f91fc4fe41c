/** Evaluates how far a server's clock is off, by the `Date` of its response as the sidecar reads it (origin-clock.ts). Pure. */
import { AGREEMENT_MS } from '../../platform/origin-clock.ts';
import type { CheckFinding } from './step-runner.ts';

/** The exchange may have taken as long. */
const WARN_MS = 10_000;
const FAIL_MS = 60_000;

/**
 * @param skewMs negative when the server is behind; undefined without a `Date`
 * @param isFatal whether the server compares its clock with times that we send: a signed assertion is valid for a minute
 */
export function evaluateSkew(skewMs: number | undefined, isFatal: boolean, wallNow: number): CheckFinding {
  if (skewMs === undefined) return { outcome: 'skip', detail: 'the response has no valid Date field' };
  // A Date has whole seconds, the fraction is cut off.
  const [offMs, side] = skewMs > 0 ? [skewMs, 'ahead of'] : [Math.max(0, -skewMs - 1000), 'behind'];
  if (offMs <= AGREEMENT_MS) return { outcome: 'ok', detail: 'its clock agrees with ours' };
  const detail = `its clock is ${String(Math.round(offMs / 1000))} s ${side} ours`;
  if (offMs <= WARN_MS) return { outcome: 'ok', detail };
  const advice = 'find out which clock is wrong, and synchronize it with a time server (NTP)';
  const isRejected = isFatal && offMs > FAIL_MS;
  const why = isRejected ? '; the server rejects our signed assertions as expired or not yet valid' : '';
  return { outcome: isRejected ? 'fail' : 'warn', detail: `${detail}, ${formatSecond(wallNow)}${why}`, advice };
}

/** RFC 3339 in UTC, to the second. */
export function formatSecond(wallAt: number): string {
  return new Date(wallAt).toISOString().replace(/\.\d+Z$/, 'Z');
}
