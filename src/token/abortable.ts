/** Waiting for shared work without owning it: who leaves ends only their own wait. */

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
