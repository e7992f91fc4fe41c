/**
 * The undocumented rate limit of the simulated API: a token bucket, and the header fields about it. It shares no code with the
 * sidecar's throttle on purpose: a common fault would not show.
 */
import type { Clock } from '../platform/clock.ts';

/**
 * The fields in responses: none; `Retry-After` in seconds on a 429 (RFC 9110 §10.2.3); or, on every response, either
 * `X-RateLimit-*` with the reset in epoch seconds, or `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10).
 */
type LimitHint = 'none' | 'retry-after' | 'x-ratelimit' | 'ratelimit';

export interface HiddenLimitOptions {
  /** More than 0; decimals allowed. */
  readonly permitsPerSecond: number;
  /** Most permits saved up; at least 1. Hints have whole seconds, so they fit a burst of a second or more. */
  readonly burst: number;
  readonly hint: LimitHint;
}

export interface HiddenLimitDecision {
  readonly isAllowed: boolean;
  /** The hint fields of the response. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Tolerance for sums of fractions. */
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
    const isAllowed = this.#permits >= 1 - ROUNDING;
    if (isAllowed) this.#permits = Math.max(0, this.#permits - 1);
    return { isAllowed, headers: this.#hintHeaders(isAllowed) };
  }

  #hintHeaders(isAllowed: boolean): Record<string, string> {
    const { permitsPerSecond, burst, hint } = this.#options;
    const remaining = Math.floor(this.#permits + ROUNDING).toString();
    const fullInSeconds = (burst - this.#permits) / permitsPerSecond;
    const windowSeconds = roundUpSeconds(burst / permitsPerSecond);
    const quota = Math.max(1, Math.floor(windowSeconds * permitsPerSecond + ROUNDING)).toString();
    switch (hint) {
      case 'none':
        return {};
      case 'retry-after':
        return isAllowed ? {} : { 'retry-after': roundUpSeconds((1 - this.#permits) / permitsPerSecond).toString() };
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

/** Rounded up, so that a client that waits that long is not refused again; at least 1, since 0 means no wait. */
function roundUpSeconds(seconds: number): number {
  return Math.max(1, Math.ceil(seconds - ROUNDING));
}
