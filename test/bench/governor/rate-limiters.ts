/**
 * Limiters that count in no window: the token bucket, the generic cell rate algorithm with the server's time steps, and the limit
 * on calls in flight.
 */
import { type Allowance, type LimiterModel, TOLERANCE_MS } from './limiter-model.ts';

/** So many per second on average, so many at once. */
export interface BucketQuota {
  readonly perSecond: number;
  /** At least 1. */
  readonly burst: number;
}

/** A bucket that starts full and refills evenly. */
export class TokenBucket implements LimiterModel {
  readonly windowMs = 0;
  readonly burst: number;
  readonly #perMs: number;
  #level: number;
  #levelAt = 0;

  constructor({ perSecond, burst }: BucketQuota) {
    this.burst = burst;
    this.#perMs = perSecond / 1000;
    this.#level = burst;
  }

  nextAt(at: number): number {
    const level = this.#levelNow(at);
    return level >= 1 ? at : at + (1 - level) / this.#perMs;
  }

  take(at: number): void {
    this.#level = this.#levelNow(at) - 1;
    this.#levelAt = at;
  }

  refuse(): void {
    // A refused call takes nothing out.
  }

  rateAt(): number {
    return this.#perMs;
  }

  capacity(fromMs: number, toMs: number): number {
    return (toMs - fromMs) * this.#perMs;
  }

  allowance(at: number): Allowance {
    const level = this.#levelNow(at);
    const remaining = Math.max(0, Math.floor(level + TOLERANCE_MS * this.#perMs));
    return { remaining, resetAt: at + (remaining + 1 - level) / this.#perMs };
  }

  #levelNow(at: number): number {
    return Math.min(this.burst, this.#level + (at - this.#levelAt) * this.#perMs);
  }
}

/** As the bucket, kept as one instant; a server that counts in whole time steps (nginx: 1 ms) is a little off. */
export interface CellRateQuota extends BucketQuota {
  /** The server's clock ticks in steps of this. Default 0: none. */
  readonly stepMs?: number;
}

export class CellRate implements LimiterModel {
  readonly windowMs = 0;
  readonly burst: number;
  readonly #intervalMs: number;
  readonly #stepMs: number;
  /** When it would be full again: the theoretical arrival time. */
  #fullAt = -Infinity;

  constructor({ perSecond, burst, stepMs = 0 }: CellRateQuota) {
    this.burst = burst;
    this.#intervalMs = 1000 / perSecond;
    this.#stepMs = stepMs;
  }

  nextAt(at: number): number {
    const freeAt = this.#fullAt - (this.burst - 1) * this.#intervalMs - TOLERANCE_MS;
    if (this.#stepped(at) >= freeAt) return at;
    return this.#stepMs === 0 ? freeAt : Math.ceil(freeAt / this.#stepMs) * this.#stepMs;
  }

  take(at: number): void {
    this.#fullAt = Math.max(this.#fullAt, this.#stepped(at)) + this.#intervalMs;
  }

  refuse(): void {
    // A refused call moves nothing.
  }

  rateAt(): number {
    return 1 / this.#intervalMs;
  }

  capacity(fromMs: number, toMs: number): number {
    return (toMs - fromMs) / this.#intervalMs;
  }

  allowance(at: number): Allowance {
    const missing = Math.max(0, this.#fullAt - this.#stepped(at)) / this.#intervalMs;
    const remaining = Math.max(0, Math.floor(this.burst - missing + TOLERANCE_MS / this.#intervalMs));
    return { remaining, resetAt: at + Math.max(0, remaining + 1 + missing - this.burst) * this.#intervalMs };
  }

  #stepped(at: number): number {
    return this.#stepMs === 0 ? at : Math.floor(at / this.#stepMs) * this.#stepMs;
  }
}

/** A limit on calls in flight at the server, each from its arrival until its response leaves. */
export class InFlightLimit implements LimiterModel {
  readonly windowMs = 0;
  readonly burst: number;
  readonly #perMs: number;

  /** @param meanServiceMs how long a call stays, on average */
  constructor(calls: number, meanServiceMs: number) {
    this.burst = calls;
    this.#perMs = calls / meanServiceMs;
  }

  nextAt(at: number, inFlight: number): number {
    return inFlight < this.burst ? at : Infinity;
  }

  take(): void {
    // The server counts what is under way.
  }

  refuse(): void {
    // A refused call is not under way.
  }

  rateAt(): number {
    return this.#perMs;
  }

  capacity(fromMs: number, toMs: number): number {
    return (toMs - fromMs) * this.#perMs;
  }

  allowance(): undefined {
    return undefined;
  }
}
