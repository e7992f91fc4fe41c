/**
 * Limits how often a 401 from the upstream causes a token request. Pure: instants come in as arguments.
 * The cooldown doubles each time such a refresh brings a token that is rejected too, because then the token is not the
 * fault. It returns to its base as soon as a token is accepted.
 */

const MAX_COOLDOWN_MS = 300_000;

export class InvalidationCooldown {
  readonly #baseMs: number;
  #cooldownMs: number;
  /** Start of the last refresh caused by a 401. */
  #refreshedAt: number | undefined;
  /** The token of that refresh until the upstream has rejected or accepted it. */
  #unverifiedSerial: number | undefined;

  constructor(baseMs: number) {
    this.#baseMs = baseMs;
    this.#cooldownMs = baseMs;
  }

  /** Whether a 401 may start a refresh at `now`. */
  canRefresh(now: number): boolean {
    return this.#refreshedAt === undefined || now - this.#refreshedAt >= this.#cooldownMs;
  }

  /** The token with this serial was rejected. Further 401s for the same one change nothing. */
  recordRejected(serial: number): void {
    if (serial !== this.#unverifiedSerial) return;
    this.#cooldownMs = Math.max(this.#cooldownMs, Math.min(this.#cooldownMs * 2, MAX_COOLDOWN_MS));
    this.#unverifiedSerial = undefined;
  }

  /** A refresh caused by a 401 starts. */
  recordRefreshStart(now: number): void {
    this.#refreshedAt = now;
    this.#unverifiedSerial = undefined;
  }

  /** The token with this serial replaced a suspect one. */
  recordReplaced(serial: number): void {
    this.#unverifiedSerial = serial;
  }

  /** The upstream accepted a replay; an older token than the newest one changes nothing. */
  recordAccepted(serial: number, heldSerial: number): void {
    if (serial < (this.#unverifiedSerial ?? heldSerial)) return;
    this.#cooldownMs = this.#baseMs;
    this.#unverifiedSerial = undefined;
  }
}
