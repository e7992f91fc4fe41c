/** Evaluates a server's clock by the Date field of a response (RFC 9110 §6.6.1). The time of the exchange is not skew. Pure. */
import { parseHttpDate } from '../../platform/http-date.ts';
import type { CheckFinding } from './step-runner.ts';

/** The Date field of a response, and the start and end of the exchange in epoch milliseconds. */
export interface DatedResponse {
  readonly date: string | undefined;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** A Date field has whole seconds. */
const DATE_RESOLUTION_MS = 1000;
const WARN_MS = 5_000;
const FAIL_MS = 60_000;

/** The least possible skew in milliseconds; negative when the server is behind. Undefined without a date. */
export function measureSkewMs({ date, sentAt, receivedAt }: DatedResponse): number | undefined {
  const at = parseHttpDate(date, receivedAt);
  if (at === undefined) return undefined;
  const leastAhead = at - receivedAt;
  const mostAhead = at + DATE_RESOLUTION_MS - sentAt;
  if (leastAhead > 0) return leastAhead;
  return mostAhead < 0 ? mostAhead : 0;
}

/** @param isFatal whether the server compares its clock with times that we send: a signed assertion is valid for a minute */
export function evaluateSkew(dated: DatedResponse, isFatal: boolean): CheckFinding {
  const skewMs = measureSkewMs(dated);
  if (skewMs === undefined) return { outcome: 'skip', detail: 'the response has no valid Date field' };
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  if (Math.abs(skewMs) <= WARN_MS) {
    const words = seconds === 0 ? 'agrees with ours' : `${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} ours`;
    return { outcome: 'ok', detail: `its clock ${words}` };
  }
  const detail = `its clock is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} ours, ${formatSecond(dated.receivedAt)}`;
  const sync = 'find out which clock is wrong, and synchronize it with a time server (NTP)';
  if (!isFatal || Math.abs(skewMs) <= FAIL_MS) return { outcome: 'warn', detail, advice: sync };
  const why = 'the server rejects our signed assertions as expired or not yet valid';
  return { outcome: 'fail', detail: `${detail}; ${why}`, advice: sync };
}

/** RFC 3339 in UTC, to the second. */
export function formatSecond(wallAt: number): string {
  return new Date(wallAt).toISOString().replace(/\.\d+Z$/, 'Z');
}
