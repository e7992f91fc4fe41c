/**
 * How far a server's clock is from ours, by the Date field of an answer (RFC 9110 §6.6.1), and whether that matters. Pure. Only what
 * the time that the answer took cannot explain counts.
 */
import { parseHttpDate } from '../../platform/http-date.ts';
import type { CheckFinding } from './step-runner.ts';

/** An answer's Date field, and when the exchange began and ended, epoch milliseconds. */
export interface DatedResponse {
  readonly date: string | undefined;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** A Date field names whole seconds. */
const DATE_RESOLUTION_MS = 1000;
const WARN_MS = 5_000;
const FAIL_MS = 60_000;

/** Milliseconds by which the server is ahead, at the least; negative when it is behind. Undefined without a date. */
export function measureSkewMs({ date, sentAt, receivedAt }: DatedResponse): number | undefined {
  const at = date === undefined ? undefined : parseHttpDate(date.trim(), receivedAt);
  if (at === undefined) return undefined;
  const leastAhead = at - receivedAt;
  const mostAhead = at + DATE_RESOLUTION_MS - sentAt;
  if (leastAhead > 0) return leastAhead;
  return mostAhead < 0 ? mostAhead : 0;
}

/** @param isFatal whether the server compares the time of what it is sent with its own: an assertion, signed for a minute */
export function evaluateSkew(dated: DatedResponse, isFatal: boolean): CheckFinding {
  const skewMs = measureSkewMs(dated);
  if (skewMs === undefined) return { outcome: 'skip', detail: 'the answer has no Date field that can be read' };
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  if (Math.abs(skewMs) <= WARN_MS) {
    const words = seconds === 0 ? 'agrees with ours' : `${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} ours`;
    return { outcome: 'ok', detail: `its clock ${words}` };
  }
  const detail = `its clock is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} ours, ${formatInstant(dated.receivedAt)}`;
  const sync = 'see which of the two is wrong, and have it follow a time server (NTP)';
  if (!isFatal || Math.abs(skewMs) <= FAIL_MS) return { outcome: 'warn', detail, advice: sync };
  const why = 'assertions that are signed here are out of their time there';
  return { outcome: 'fail', detail: `${detail}; ${why}`, advice: sync };
}

function formatInstant(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/\.\d+Z$/, 'Z');
}
