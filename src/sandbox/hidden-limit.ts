/**
 * The rate limit that the simulated API enforces without documenting it: a token bucket, and what an answer says of it.
 * Written apart from the sidecar's own throttle on purpose: a shared fault would hide itself.
 */
import type { Clock } from '../platform/clock.ts';

/**
 * What the answers say: nothing; `Retry-After` in seconds on a 429 (RFC 9110 §10.2.3); or, on every answer, either
 * `X-RateLimit-*` with the reset in epoch seconds, or `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10).
 */
type LimitHint = 'none' | 'retry-after' | 'x-ratelimit' | 'ratelimit';

export interface HiddenLimitOptions {
  /** More than 0; decimals allowed. */
  readonly permitsPerSecond: number;
  /** Permits saved up at most; at least 1. Hints count whole seconds, so they suit a burst of a second or more. */
  readonly burst: number;
  readonly hint: LimitHint;
}

export interface HiddenLimitDecision {
  readonly isAllowed: boolean;
  /** The fields that the answer carries, as its style of hint has them. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Sums of fractions may miss a whole permit by this much. */
const ROUNDING = 1e-9;

export class HiddenLimit {
  readonly #clock: Clock;
  readonly #options: HiddenLimitOptions;
  #permits: number;
  #updatedAt: number;

  constructor(clock: Clock, options: HiddenLimitOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#permits = options.burst;
    this.#updatedAt = clock.now();
  }

  /** Spends one permit, if there is one. */
  take(): HiddenLimitDecision {
    const { permitsPerSecond, burst } = this.#options;
    const now = this.#clock.now();
    this.#permits = Math.min(burst, this.#permits + ((now - this.#updatedAt) / 1000) * permitsPerSecond);
    this.#updatedAt = now;
    const allowed = this.#permits >= 1 - ROUNDING;
    if (allowed) this.#permits = Math.max(0, this.#permits - 1);
    return { isAllowed: allowed, headers: this.#hintHeaders(allowed) };
  }

  #hintHeaders(allowed: boolean): Record<string, string> {
    const { permitsPerSecond, burst, hint } = this.#options;
    const remaining = Math.floor(this.#permits + ROUNDING).toString();
    const fullInSeconds = (burst - this.#permits) / permitsPerSecond;
    const windowSeconds = roundUpSeconds(burst / permitsPerSecond);
    const quota = Math.max(1, Math.floor(windowSeconds * permitsPerSecond + ROUNDING)).toString();
    switch (hint) {
      case 'none':
        return {};
      case 'retry-after':
        return allowed ? {} : { 'retry-after': roundUpSeconds((1 - this.#permits) / permitsPerSecond).toString() };
      case 'x-ratelimit':
        return {
          'x-ratelimit-limit': quota,
          'x-ratelimit-remaining': remaining,
          'x-ratelimit-reset': roundUpSeconds(this.#clock.wallNow() / 1000 + fullInSeconds).toString(),
        };
      case 'ratelimit':
        return {
          'ratelimit-policy': `"hidden";q=${quota};w=${windowSeconds.toString()}`,
          ratelimit: `"hidden";r=${remaining};t=${roundUpSeconds(fullInSeconds).toString()}`,
        };
    }
  }
}

/** Rounded up, so that a client that waits as told is not refused again; at least 1, since 0 says not to wait. */
function roundUpSeconds(seconds: number): number {
  return Math.max(1, Math.ceil(seconds - ROUNDING));
}
