/** A wait that an abort signal ends early, without cancelling the shared work. */

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
