/** Waiting without owning what is waited for: who leaves ends only their own wait. */
import type { Clock } from '../../platform/clock.ts';

/** As `work`, yet rejects with the signal's reason as soon as it is aborted; `work` itself goes on. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    const stay = (): void => {
      signal.removeEventListener('abort', leave);
    };
    work.then(resolve, reject).then(stay, stay);
  });
}

/** Resolves after `delayMs`, and at once when the signal is aborted. */
export function abortableDelay(clock: Pick<Clock, 'after'>, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      cancel();
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const cancel = clock.after(signal.aborted ? 0 : delayMs, wake);
    signal.addEventListener('abort', wake, { once: true });
  });
}
