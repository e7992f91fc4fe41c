/** When a token may still be sent, when its refresh is due, and how long to wait after a failed token request. Pure. */
import type { TokenRequestFailure } from '../endpoint/token-response.ts';
import type { Token } from '../token.ts';

/** Share of the lifetime that is kept for the flight to the upstream, up to `MAX_MARGIN_MS`. */
const MARGIN_SHARE = 0.1;
const MAX_MARGIN_MS = 2_000;

/**
 * The latest refresh, as a share of the lifetime: a token that lives short is refreshed earlier, because the upstream may accept its
 * successor only some seconds after its issue.
 */
const LATEST_REFRESH_SHARE = 0.85;
const LATEST_EARLY_REFRESH_SHARE = 0.75;
const RESERVE_MS = 30_000;
/** Spread over a tenth of the lifetime, so that replicas started together do not refresh together. */
const REFRESH_SPREAD = 0.1;

const MIN_BACKOFF_MS = 200;
const FIRST_BACKOFF_CEILING_MS = 1_000;

/**
 * Start to start of two requests in an outage while a caller waits: a waiting caller has a token within 5 s of the endpoint's recovery.
 * After one that ran into its time-out the rest is shorter, but at least `MIN_PAUSE_MS`.
 */
const MAX_EAGER_MS = 4_750;
const EAGER_SPREAD_MS = 750;
const MIN_PAUSE_MS = 1_000;

/** While no caller waits, an outage costs one request per minute. */
const MAX_IDLE_MS = 60_000;
const IDLE_SPREAD_MS = 6_000;

/** A wrong `Retry-After` must not prolong the outage by hours. */
const MAX_STATED_WAIT_MS = 300_000;
/** A lasting failure stays until a person acts or a limit ends; a first one without a reason may come from something in front of the server. */
const LASTING_WAIT_MS = 60_000;
const FIRST_UNEXPLAINED_WAIT_MS = 10_000;

/** True when the token can be sent now and still arrive before it expires. @param now on the clock of `token` */
export function isUsable(token: Pick<Token, 'obtainedAt' | 'expiresAt'>, now: number): boolean {
  return now < usableUntil(token);
}

/** Until when the token can be sent and still arrive before it expires, on its clock. */
export function usableUntil({ obtainedAt, expiresAt }: Pick<Token, 'obtainedAt' | 'expiresAt'>): number {
  return expiresAt - Math.min((expiresAt - obtainedAt) * MARGIN_SHARE, MAX_MARGIN_MS);
}

/** Milliseconds from a token request to the next one: 75 to 85 % of the lifetime; of one below 200 s less, down to 65 to 75 %. */
export function chooseRefreshDelayMs(lifetimeMs: number, random: number): number {
  const early = Math.max(LATEST_EARLY_REFRESH_SHARE * lifetimeMs, lifetimeMs - RESERVE_MS);
  const latest = Math.min(LATEST_REFRESH_SHARE * lifetimeMs, early);
  return latest - REFRESH_SPREAD * lifetimeMs * (1 - random);
}

/** When the token endpoint may be requested again, milliseconds from its failure. */
export interface TokenRetryDelays {
  /** While a caller waits for a token. */
  readonly eagerMs: number;
  /** While no caller waits; at least `eagerMs`. */
  readonly idleMs: number;
}

export interface TokenFailureFacts {
  /** Consecutive, this one included. */
  readonly failures: number;
  /** Lasting ones since the last token, this one included. */
  readonly lastingFailures: number;
  /** False: full jitter below a ceiling that doubles from 1 s. True: single requests at intervals. */
  readonly isCircuitOpen: boolean;
  readonly requestDurationMs: number;
  /** In [0, 1). */
  readonly random: number;
}

/** Whether an early retry cannot help: a rejection, a response without a token, a limit that states no wait. */
export function isLasting(failure: TokenRequestFailure): boolean {
  return failure.kind !== 'unavailable' || failure.isLasting === true;
}

/**
 * A longer `Retry-After` of the endpoint is obeyed up to 300 s. After a lasting failure the wait is 60 s (10 s after the first, unless the
 * server explained a rejection), or that of the process that received it.
 */
export function chooseRetryDelays(failure: TokenRequestFailure, facts: TokenFailureFacts): TokenRetryDelays {
  const minMs = Math.min(failure.retryAfterMs ?? 0, MAX_STATED_WAIT_MS);
  const isOfOther = failure.from !== undefined && minMs > 0;
  if (isLasting(failure)) {
    const isUnexplained = failure.kind !== 'rejected' || failure.isUnexplained === true;
    const ownMs = isUnexplained && facts.lastingFailures === 1 ? FIRST_UNEXPLAINED_WAIT_MS : LASTING_WAIT_MS;
    const waitMs = Math.max(isOfOther ? MAX_EAGER_MS : ownMs, minMs);
    return { eagerMs: waitMs, idleMs: waitMs };
  }
  const { eagerMs, idleMs } = facts.isCircuitOpen ? chooseOutageDelays(facts) : chooseBackoff(facts);
  // The backoff of the replica that failed is already running: add none of our own.
  return { eagerMs: isOfOther ? minMs : Math.max(eagerMs, minMs), idleMs: Math.max(idleMs, minMs) };
}

function chooseBackoff({ failures, random }: TokenFailureFacts): TokenRetryDelays {
  const ceilingMs = Math.min(MAX_EAGER_MS, FIRST_BACKOFF_CEILING_MS * 2 ** (failures - 1));
  const backoffMs = MIN_BACKOFF_MS + random * (ceilingMs - MIN_BACKOFF_MS);
  return { eagerMs: backoffMs, idleMs: backoffMs };
}

/** Spread, so that replicas that lost the endpoint together do not send requests together. */
function chooseOutageDelays({ requestDurationMs, random }: TokenFailureFacts): TokenRetryDelays {
  const intervalMs = MAX_EAGER_MS - random * EAGER_SPREAD_MS;
  return {
    eagerMs: Math.max(MIN_PAUSE_MS, intervalMs - requestDurationMs),
    idleMs: MAX_IDLE_MS - random * IDLE_SPREAD_MS,
  };
}
