/** One call of a token fetcher that always settles and never rejects. */
import type { Clock } from '../../platform/clock.ts';
import { abortable } from './abortable.ts';
import type { DeclinableFetchResult, TokenNeed, TokenFetcher } from './token-fetcher.ts';

/**
 * A stop, a time-out and a thrown error all become `unavailable`.
 * @param timeoutMs undefined = the fetcher ends the fetch itself
 */
export async function fetchWithTimeout(
  { fetcher, clock }: { readonly fetcher: TokenFetcher; readonly clock: Pick<Clock, 'after'> },
  need: TokenNeed,
  stop: AbortSignal,
  timeoutMs: number | undefined,
): Promise<DeclinableFetchResult> {
  const timeout = new AbortController();
  const cancel =
    timeoutMs === undefined ? undefined : clock.after(timeoutMs, () => timeout.abort(new Error('timed out')));
  const signal = AbortSignal.any([stop, timeout.signal]);
  try {
    return await abortable(fetcher.fetch(need, signal), signal);
  } catch {
    // The error's own message may quote what was sent.
    const fault = timeout.signal.aborted ? `brought nothing within ${String(timeoutMs)} ms` : 'failed unexpectedly';
    return { kind: 'unavailable', detail: `the token request ${fault}` };
  } finally {
    cancel?.();
  }
}
