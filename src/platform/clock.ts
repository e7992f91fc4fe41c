/**
 * Time and chance as values that are handed in, so that everything that waits can be tested in virtual time.
 * Durations end in `Ms`, instants in `At`. Instants are monotonic unless a name says `wall`.
 */
import { TimerList } from './timer-list.ts';

/** Cancels a timer; calling it again, or after it fired, does nothing. */
export type Cancel = () => void;

/** A number in [0, 1), as Math.random gives. */
export type Random = () => number;

export interface Clock {
  /** Monotonic milliseconds since an arbitrary start, with fractions. */
  now(): number;
  /** Milliseconds since the Unix epoch; may jump. */
  wallNow(): number;
  /**
   * Runs `run` once after `delayMs`, never synchronously. Any finite delay is allowed; a negative one counts as 0.
   * @param from what `now` has just given, where the caller knows it
   */
  after(delayMs: number, run: () => void, from?: number): Cancel;
  /** As `after`, yet never early and as near after the instant `at` (of `now`) as the event loop allows. */
  exactlyAt(at: number, run: () => void): Cancel;
}

/** The longest delay that Node's timers take; past it they fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The process's own clock. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  after(delayMs, run, from) {
    if (delayMs > LONGEST_TIMER_MS) return startLongTimer(delayMs, run);
    const line = getTimerList(delayMs);
    return line === undefined ? startNodeTimer(delayMs, run) : line.add(run, from);
  },
  exactlyAt(at, run) {
    let immediate: NodeJS.Immediate | undefined;
    let cancelTimer: Cancel | undefined;
    // Node's timers have millisecond steps: what is left below one step is spent in turns of the event loop.
    const approach = (): void => {
      const leftMs = at - performance.now();
      if (leftMs <= 0) run();
      else if (leftMs < 1) immediate = setImmediate(approach);
      else cancelTimer = startNodeTimer(Math.floor(leftMs), approach);
    };
    immediate = setImmediate(approach);
    return () => {
      clearImmediate(immediate);
      cancelTimer?.();
    };
  },
};

function startNodeTimer(delayMs: number, run: () => void): Cancel {
  if (delayMs > LONGEST_TIMER_MS) return startLongTimer(delayMs, run);
  const timer = setTimeout(run, Math.max(0, delayMs));
  return () => {
    clearTimeout(timer);
  };
}

/** Time-outs are configured, so that few of them are in use at a time; what clients made up gives way. */
const MAX_TIMER_LISTS = 32;
const MIN_TIMER_LIST_MS = 1000;
const timerLists = new Map<number, TimerList>();

function getTimerList(delayMs: number): TimerList | undefined {
  const line = timerLists.get(delayMs);
  if (line !== undefined || !Number.isInteger(delayMs) || delayMs < MIN_TIMER_LIST_MS) return line;
  if (timerLists.size >= MAX_TIMER_LISTS) dropEmptyTimerLists();
  if (timerLists.size >= MAX_TIMER_LISTS) return undefined;
  const another = new TimerList(delayMs);
  timerLists.set(delayMs, another);
  return another;
}

function dropEmptyTimerLists(): void {
  for (const [delayMs, line] of timerLists) if (line.isEmpty) timerLists.delete(delayMs);
}

/** Step by step. */
function startLongTimer(delayMs: number, run: () => void): Cancel {
  let cancel = systemClock.after(LONGEST_TIMER_MS, () => {
    cancel = systemClock.after(delayMs - LONGEST_TIMER_MS, run);
  });
  return () => {
    cancel();
  };
}

/** Resolves after `delayMs`, or when the signal is aborted. */
export async function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const end = (): void => resolve(undefined);
  const cancel = clock.after(delayMs, end);
  signal.addEventListener('abort', end, { once: true });
  await promise;
  cancel();
  signal.removeEventListener('abort', end);
}
