/** Formats numbers, durations and shares for people (pure). */
import type { ThrottleState } from '../throttle/throttle.ts';
import type { DeclaredLimitState } from '../throttle/declared/declared-limit.ts';

const DAY_S = 86_400;
const HOUR_S = 3600;

export function formatInteger(value: number): string {
  return Math.round(value).toLocaleString('en-GB');
}

/** A rate: two digits below ten, none above. */
export function formatRate(perSecond: number): string {
  if (perSecond === 0) return '0';
  if (perSecond < 0.095) return perSecond.toFixed(2);
  return perSecond < 9.95 ? String(Number(perSecond.toFixed(1))) : formatInteger(perSecond);
}

/** A rate for the headline, rounded to halves from three to ten so that the headline seldom changes. */
export function formatRoundedRate(perSecond: number): string {
  return perSecond < 2.95 || perSecond > 10 ? formatRate(perSecond) : String(Math.round(perSecond * 2) / 2);
}

/** A latency: `0.4 ms`, `45 ms`, `1.2 s`. */
export function formatLatency(ms: number | undefined): string {
  if (ms === undefined) return '–';
  if (ms < 10) return `${Number(ms.toPrecision(2))} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${Number((ms / 1000).toPrecision(2))} s`;
}

/** A share from 0 to 1 in per cent: two digits below ten, and never 0 or 100 unless it is. */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent > 99.5 && percent < 100) return '99 %';
  return `${percent < 9.95 ? Number(percent.toPrecision(2)) : Math.round(percent)} %`;
}

/** A duration in its two largest units: `59 min 12 s`, `2 h 5 min`. Like `formatDuration` of client/page.js. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [days, hours] = [Math.floor(seconds / DAY_S), Math.floor((seconds % DAY_S) / HOUR_S)];
  const [minutes, rest] = [Math.floor((seconds % HOUR_S) / 60), seconds % 60];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
}

/** `1 call`, `3 calls`. */
export function formatCount(number: number, noun: string): string {
  return `${formatInteger(number)} ${noun}${number === 1 ? '' : 's'}`;
}

/** Which calls a declared limit counts, as an addition to its figures; nothing where it counts all. */
export function describeCounted({ match, values }: Pick<DeclaredLimitState, 'match' | 'values'>): string {
  const fullest = values === undefined ? '' : `, the fullest of ${formatInteger(values)}`;
  return match === undefined ? '' : ` to ${match}${fullest}`;
}

/** Which operations the refusals fall on, and what helps the others; undefined while that is not known. */
export function describeOperations({ lanes = [], refusedOperation }: ThrottleState): string | undefined {
  const own = lanes.flatMap(({ operation, learned, isConfirmed, pausedMs, queued }) => {
    if (!isConfirmed || learned === undefined) return [];
    if (learned.kind !== 'unknown')
      return `${operation} is limited to about ${formatRate(learned.rate)} requests per second`;
    // A lane without a limit holds up nothing once its calls are accepted again.
    return pausedMs > 0 || queued > 0 ? `${operation} is refused` : [];
  });
  if (own.length > 0) return `${own.join(', ')}; other operations are not`;
  if (refusedOperation === undefined || lanes.length > 0) return undefined;
  return `the refusals fall on ${refusedOperation}: with throttle.lanes: true (SIDECAR_THROTTLE_LANES=true) its limit slows no other operation`;
}
