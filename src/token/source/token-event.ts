/** The event that reports the result of a token fetch. Pure. */
import type { SidecarEvent } from '../../telemetry/events.ts';
import type { TokenFetchResult } from './token-fetcher.ts';

export interface TokenFetchFacts {
  readonly credential: string;
  readonly durationMs: number;
  /** Milliseconds until the next token request; undefined when none is planned. */
  readonly nextInMs: number | undefined;
  /** Epoch milliseconds. */
  readonly wallNow: number;
}

/** Only a token request of this process becomes `token-requested`. */
export function createTokenEvent(result: TokenFetchResult, facts: TokenFetchFacts): SidecarEvent {
  const { credential, durationMs, nextInMs, wallNow } = facts;
  const next = nextInMs === undefined ? {} : { nextInMs };
  if (result.kind === 'found') {
    const { from, token } = result;
    return { kind: 'token-found', credential, from, validForMs: token.expiresWallAt - wallNow };
  }
  if (result.kind === 'ok') {
    const { kind: outcome, lifetimeMs } = result;
    return { kind: 'token-requested', credential, outcome, durationMs, lifetimeMs, ...next };
  }
  const { kind: outcome, detail, from } = result;
  return from === undefined
    ? { kind: 'token-requested', credential, outcome, durationMs, detail, ...next }
    : { kind: 'token-not-asked', credential, outcome, detail, from, ...next };
}
