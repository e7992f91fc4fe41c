/**
 * How often a 401 from the upstream may cost a token request. Pure: the state is a value, time an argument.
 * A cooldown separates the refreshes that 401s cause; it doubles each time that such a refresh brought a token which was
 * refused as well, because then the fault is not the token, and returns to its base as soon as one is taken.
 */

export interface InvalidationCooldown {
  readonly baseMs: number;
  readonly cooldownMs: number;
  /** When the last refresh caused by a 401 began; undefined before the first. */
  readonly refreshedAt: number | undefined;
  /** The token that came of it, until its verdict is in: refused or accepted. */
  readonly unverifiedSerial: number | undefined;
}

const LONGEST_COOLDOWN_MS = 300_000;

export function createInvalidationCooldown(baseMs: number): InvalidationCooldown {
  return { baseMs, cooldownMs: baseMs, refreshedAt: undefined, unverifiedSerial: undefined };
}

/** Whether a refresh caused by a 401 may begin at `now`. */
export function canRefresh({ refreshedAt, cooldownMs }: InvalidationCooldown, now: number): boolean {
  return refreshedAt === undefined || now - refreshedAt >= cooldownMs;
}

/** A 401 came for the token with this serial. Further 401s for the same one change nothing. */
export function recordRefused(state: InvalidationCooldown, serial: number): InvalidationCooldown {
  if (serial !== state.unverifiedSerial) return state;
  const cooldownMs = Math.max(state.cooldownMs, Math.min(state.cooldownMs * 2, LONGEST_COOLDOWN_MS));
  return { ...state, cooldownMs, unverifiedSerial: undefined };
}

/** A refresh caused by a 401 begins. */
export function recordRefreshStart(state: InvalidationCooldown, now: number): InvalidationCooldown {
  return { ...state, refreshedAt: now, unverifiedSerial: undefined };
}

/** A suspect token has been replaced by the one with this serial. */
export function recordReplaced(state: InvalidationCooldown, serial: number): InvalidationCooldown {
  return { ...state, unverifiedSerial: serial };
}

/** The upstream took a replay: it takes tokens, whatever it refused before. */
export function recordAccepted(state: InvalidationCooldown): InvalidationCooldown {
  return { ...state, cooldownMs: state.baseMs, unverifiedSerial: undefined };
}
