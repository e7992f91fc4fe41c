/**
 * Limits how often a 401 from the upstream causes a token request. Pure: the state is a value, time an argument.
 * The cooldown doubles each time such a refresh brings a token that is refused too, because then the token is not the
 * fault. It returns to its base as soon as a token is accepted.
 */

export interface InvalidationCooldown {
  readonly baseMs: number;
  readonly cooldownMs: number;
  /** Start of the last refresh caused by a 401; undefined before the first. */
  readonly refreshedAt: number | undefined;
  /** The token of that refresh until the upstream has refused or accepted it. */
  readonly unverifiedSerial: number | undefined;
}

const MAX_COOLDOWN_MS = 300_000;

export function createInvalidationCooldown(baseMs: number): InvalidationCooldown {
  return { baseMs, cooldownMs: baseMs, refreshedAt: undefined, unverifiedSerial: undefined };
}

/** Whether a 401 may start a refresh at `now`. */
export function canRefresh({ refreshedAt, cooldownMs }: InvalidationCooldown, now: number): boolean {
  return refreshedAt === undefined || now - refreshedAt >= cooldownMs;
}

/** The token with this serial was refused. Further 401s for the same one change nothing. */
export function recordRefused(state: InvalidationCooldown, serial: number): InvalidationCooldown {
  if (serial !== state.unverifiedSerial) return state;
  const cooldownMs = Math.max(state.cooldownMs, Math.min(state.cooldownMs * 2, MAX_COOLDOWN_MS));
  return { ...state, cooldownMs, unverifiedSerial: undefined };
}

/** A refresh caused by a 401 starts. */
export function recordRefreshStart(state: InvalidationCooldown, now: number): InvalidationCooldown {
  return { ...state, refreshedAt: now, unverifiedSerial: undefined };
}

/** The token with this serial replaced a suspect one. */
export function recordReplaced(state: InvalidationCooldown, serial: number): InvalidationCooldown {
  return { ...state, unverifiedSerial: serial };
}

/** The upstream accepted a replay. */
export function recordAccepted(state: InvalidationCooldown): InvalidationCooldown {
  return { ...state, cooldownMs: state.baseMs, unverifiedSerial: undefined };
}
