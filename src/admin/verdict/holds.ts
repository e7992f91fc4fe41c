/** What holds requests back, in words: pauses, declared limits, a process that stands still (pure). */
import { formatInstant } from '../../platform/instant-text.ts';
import type { DeclaredLimitState } from '../../throttle/declared/declared-limit.ts';
import type { ThrottleState } from '../../throttle/throttle.ts';
import { formatCount, formatInteger, formatLatency, formatShare } from '../quantity-texts.ts';
import type { Samples } from '../samples/sample-ring.ts';
import { formatClock } from './past.ts';

/** How far back the present reaches. */
export const PRESENT_MS = 5000;
/** An idle process is late by less. */
const STALLED_SHARE = 0.2;
const NEARLY = 0.9;
/** A pause of this length is described by its end, a shorter one by its length. */
export const LONG_PAUSE_MS = 60_000;

export function describePause(
  { pausedMs, recentSignals: [signal] }: ThrottleState,
  wallNow: number,
): string | undefined {
  if (pausedMs < 1000) return undefined;
  const end =
    pausedMs === Infinity
      ? 'until the partner accepts a call'
      : pausedMs < LONG_PAUSE_MS
        ? `for ${formatLatency(pausedMs)}`
        : `until ${formatClock(wallNow + pausedMs, wallNow)}`;
  return `paused ${end}${signal?.stated === true ? ', as the partner stated' : ''}`;
}

/** When the first of the pauses began that followed each other until now. */
export function findPauseBegin({ pausedMs, recentSignals }: ThrottleState): number | undefined {
  let began: number | undefined;
  if (pausedMs < 1000) return began;
  for (const { wallAt, pauseMs } of recentSignals) {
    if (began !== undefined && wallAt + pauseMs + PRESENT_MS < began) break;
    began = wallAt;
  }
  return began;
}

/** Also between two pauses, while the first call after one has no response. */
export function isPausedLately({ pausedMs, recentSignals: [signal] }: ThrottleState, wallNow: number): boolean {
  return pausedMs > 0 || (signal !== undefined && wallNow < signal.wallAt + signal.pauseMs + PRESENT_MS);
}

/** The declared limit that is used up, or nearly: a sliding window under load is never quite full. A short one may just have opened. */
export function findFull({ limits = [] }: ThrottleState): DeclaredLimitState | undefined {
  const usedPart = ({ used, calls, reserve }: DeclaredLimitState): number => used / (calls - reserve);
  const [fullest] = limits.toSorted((one, other) => usedPart(other) - usedPart(one));
  return fullest !== undefined && usedPart(fullest) >= NEARLY ? fullest : undefined;
}

export function describeDeclaredUse(throttle: ThrottleState): string | undefined {
  const full = findFull(throttle);
  if (full === undefined) return undefined;
  const end = Number.isFinite(full.resetsAt) ? `; calls leave it from ${formatInstant(full.resetsAt)} on` : '';
  return `${formatInteger(full.used)} of ${formatCount(full.calls, 'call')} are used${end}`;
}

/** While the process stands still, what takes long says nothing about the partner or a limit. */
export function findStall(samples: Samples, windowMs: number) {
  const part = samples.stalledMs(windowMs) / windowMs;
  return part < STALLED_SHARE ? undefined : ({ cause: 'stalled', values: { stalled: formatShare(part) } } as const);
}
