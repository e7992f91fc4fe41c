/** Waits that an abort signal ends early, without cancelling the shared work. */
import type { Clock } from '../../platform/clock.ts';

/** Settles as `work` does, or rejects with the signal's reason as soon as it is aborted; `work` goes on. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    const stopListening = (): void => {
      signal.removeEventListener('abort', onAbort);
    };
    work.then(resolve, reject).then(stopListening, stopListening);
  });
}

/** Resolves after `delayMs`, or as soon as the signal is aborted. */
export function abortableDelay(clock: Pick<Clock, 'after'>, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      cancel();
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const cancel = clock.after(signal.aborted ? 0 : delayMs, finish);
    signal.addEventListener('abort', finish, { once: true });
  });
}
