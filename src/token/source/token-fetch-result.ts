/** What a turn at the supply came to, and the event that tells of it. Pure. */
import type { SidecarEvent } from '../../telemetry/events.ts';
import type { DeclinableFetchResult } from './token-fetcher.ts';

/** All but what leaves everything as it was. */
export type TokenFetchResult = Exclude<DeclinableFetchResult, { kind: 'declined' }>;

export interface TokenFetchFacts {
  readonly credential: string;
  readonly durationMs: number;
  /** When the next request is due, milliseconds from now; undefined when nothing is planned. */
  readonly nextInMs: number | undefined;
  /** Epoch milliseconds. */
  readonly wallNow: number;
}

/** Only a request of this process counts as one. */
export function createTokenEvent(settled: TokenFetchResult, facts: TokenFetchFacts): SidecarEvent {
  const { credential, durationMs, nextInMs, wallNow } = facts;
  const next = nextInMs === undefined ? {} : { nextInMs };
  if (settled.kind === 'found') {
    const { from, token } = settled;
    return { kind: 'token-found', credential, from, validForMs: token.expiresWallAt - wallNow };
  }
  if (settled.kind === 'ok') {
    const { kind: outcome, lifetimeMs } = settled;
    return { kind: 'token-requested', credential, outcome, durationMs, lifetimeMs, ...next };
  }
  const { kind: outcome, detail, from } = settled;
  return from === undefined
    ? { kind: 'token-requested', credential, outcome, durationMs, detail, ...next }
    : { kind: 'token-not-asked', credential, outcome, detail, from, ...next };
}
