/**
 * Time and chance as injected values, so that everything that waits can be tested in virtual time.
 * Durations end in `Ms`, instants in `At`. Instants are monotonic unless a name says `wall`.
 */
import { TimerList, type Timer, type TimerTarget } from './timer-list.ts';

export type { Timer, TimerTarget };

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
   * @param from what `now` has just given. Default: it is read again
   */
  after(delayMs: number, run: () => void, from?: number): Cancel;
  /** As `after`, for what starts many timers: an object is called, and no closure is needed. */
  startTimer(delayMs: number, target: TimerTarget, from?: number): Timer;
  /** As `after`, but never early, and as soon after the instant `at` (of `now`) as the event loop allows. */
  exactlyAt(at: number, run: () => void): Cancel;
}

/** The longest delay of Node's timers; longer ones fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  after(delayMs, run, from) {
    const timer = systemClock.startTimer(delayMs, { onTimer: run }, from);
    return () => timer.cancel();
  },
  startTimer(delayMs, target, from) {
    const list = timerLists.get(delayMs) ?? createTimerList(delayMs);
    return list === undefined ? { cancel: startNodeTimer(delayMs, () => target.onTimer()) } : list.add(target, from);
  },
  exactlyAt(at, run) {
    let immediate: NodeJS.Immediate | undefined;
    let cancelTimer: Cancel | undefined;
    // Node's timers have steps of a millisecond: the rest below one step passes in turns of the event loop.
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

/** Configured timeouts need few lists; delays that clients choose get one only while there is room. */
const MAX_TIMER_LISTS = 32;
const MIN_TIMER_LIST_MS = 1000;
const timerLists = new Map<number, TimerList>();

/** Undefined for delays that get a timer of their own. */
function createTimerList(delayMs: number): TimerList | undefined {
  if (!Number.isInteger(delayMs) || delayMs < MIN_TIMER_LIST_MS || delayMs > LONGEST_TIMER_MS) return undefined;
  if (timerLists.size >= MAX_TIMER_LISTS) dropEmptyTimerLists();
  if (timerLists.size >= MAX_TIMER_LISTS) return undefined;
  const list = new TimerList(delayMs);
  timerLists.set(delayMs, list);
  return list;
}

function dropEmptyTimerLists(): void {
  for (const [delayMs, list] of timerLists) if (list.isEmpty) timerLists.delete(delayMs);
}

function startNodeTimer(delayMs: number, run: () => void): Cancel {
  if (delayMs > LONGEST_TIMER_MS) return startLongTimer(delayMs, run);
  const timer = setTimeout(run, Math.max(0, delayMs));
  return () => clearTimeout(timer);
}

function startLongTimer(delayMs: number, run: () => void): Cancel {
  let cancel = startNodeTimer(LONGEST_TIMER_MS, () => {
    cancel = startNodeTimer(delayMs - LONGEST_TIMER_MS, run);
  });
  return () => cancel();
}

/** Resolves after `delayMs`, or when the signal is aborted. */
export async function sleep(clock: Pick<Clock, 'after'>, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const end = (): void => resolve(undefined);
  const cancel = clock.after(delayMs, end);
  signal.addEventListener('abort', end, { once: true });
  await promise;
  cancel();
  signal.removeEventListener('abort', end);
}

/** Settles as `work` does, or resolves with undefined after `delayMs`; `work` goes on. */
export function waitAtMost<T>(work: Promise<T>, clock: Pick<Clock, 'after'>, delayMs: number): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const cancel = clock.after(delayMs, () => late.resolve(undefined));
  return Promise.race([work, late.promise]).finally(cancel);
}

/** Settles as `work` does, or rejects with the signal's reason as soon as it is aborted; `work` goes on. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    const stopListening = (): void => signal.removeEventListener('abort', onAbort);
    work.then(resolve, reject).then(stopListening, stopListening);
  });
}
