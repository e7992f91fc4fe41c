/** One turn at the supply, made to settle and never to reject: by the end of a patience, by a stop, whatever is thrown. */
import type { Clock } from '../../platform/clock.ts';
import { abortable } from '../source/abortable.ts';
import type { DeclinableFetchResult, TokenNeed, TokenFetcher } from '../source/token-fetcher.ts';

/**
 * @param stop ends it as unavailable
 * @param patienceMs after this the request is abandoned, and has failed; undefined = it ends by itself
 */
export async function fetchWithTimeout(
  { fetcher, clock }: { readonly fetcher: TokenFetcher; readonly clock: Pick<Clock, 'after'> },
  need: TokenNeed,
  stop: AbortSignal,
  patienceMs: number | undefined,
): Promise<DeclinableFetchResult> {
  const patience = new AbortController();
  const cancel =
    patienceMs === undefined ? undefined : clock.after(patienceMs, () => patience.abort(new Error('late')));
  const signal = AbortSignal.any([stop, patience.signal]);
  try {
    return await abortable(fetcher.fetch(need, signal), signal);
  } catch {
    // Whatever was thrown was not made for showing: it may quote what was sent.
    const fault = patience.signal.aborted ? `brought nothing within ${String(patienceMs)} ms` : 'failed unexpectedly';
    return { kind: 'unavailable', detail: `the token request ${fault}` };
  } finally {
    cancel?.();
  }
}
