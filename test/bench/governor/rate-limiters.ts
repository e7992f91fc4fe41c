/**
 * Limiters that count in no window: the token bucket, refilled evenly or in bulk, the generic cell rate algorithm with the server's time
 * steps, and the limit on calls in flight.
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
  /** Calls above the rate wait at the server until it is their turn (nginx without `nodelay`). Default false. */
  readonly holdsBack?: boolean;
}

export class CellRate implements LimiterModel {
  readonly windowMs = 0;
  readonly burst: number;
  readonly #intervalMs: number;
  readonly #stepMs: number;
  readonly #holdsBack: boolean;
  /** When it would be full again: the theoretical arrival time. */
  #fullAt = -Infinity;

  constructor({ perSecond, burst, stepMs = 0, holdsBack = false }: CellRateQuota) {
    this.burst = burst;
    this.#intervalMs = 1000 / perSecond;
    this.#stepMs = stepMs;
    this.#holdsBack = holdsBack;
  }

  nextAt(at: number): number {
    const freeAt = this.#fullAt - (this.burst - 1) * this.#intervalMs - TOLERANCE_MS;
    if (this.#stepped(at) >= freeAt) return at;
    return this.#stepMs === 0 ? freeAt : Math.ceil(freeAt / this.#stepMs) * this.#stepMs;
  }

  take(at: number): void {
    this.#fullAt = Math.max(this.#fullAt, this.#stepped(at)) + this.#intervalMs;
  }

  heldMs(at: number): number {
    return this.#holdsBack ? Math.max(0, this.#fullAt - this.#stepped(at)) : 0;
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

/** A bucket that is refilled by many permits at a time. */
export interface BulkQuota {
  /** Permits of one refill. */
  readonly calls: number;
  readonly everyMs: number;
  /** The most that the bucket holds, at least `calls`. */
  readonly burst: number;
  /** How far the server's clock is ahead of ours; refills come at multiples of `everyMs` by that clock. Default 0. */
  readonly phaseMs?: number;
}

export class BulkRefill implements LimiterModel {
  /** A refill may come at either edge of a time range. */
  readonly burst: number;
  readonly windowMs: number;
  readonly #most: number;
  readonly #calls: number;
  readonly #phaseMs: number;
  #level: number;
  #refills: number;

  constructor({ calls, everyMs, burst, phaseMs = 0 }: BulkQuota) {
    this.burst = burst + calls;
    this.#most = burst;
    this.windowMs = everyMs;
    this.#calls = calls;
    this.#phaseMs = phaseMs;
    this.#level = burst;
    this.#refills = this.#refillsUntil(0);
  }

  nextAt(at: number): number {
    return this.#levelAt(at) >= 1 ? at : this.#nextRefillAt(at);
  }

  take(at: number): void {
    this.#level = this.#levelAt(at) - 1;
    this.#refills = this.#refillsUntil(at);
  }

  refuse(): void {
    // A refused call takes nothing out.
  }

  rateAt(): number {
    return this.#calls / this.windowMs;
  }

  capacity(fromMs: number, toMs: number): number {
    return (toMs - fromMs) * this.rateAt();
  }

  allowance(at: number): Allowance {
    return { remaining: this.#levelAt(at), resetAt: this.#nextRefillAt(at) };
  }

  #levelAt(at: number): number {
    return Math.min(this.#most, this.#level + (this.#refillsUntil(at) - this.#refills) * this.#calls);
  }

  #nextRefillAt(at: number): number {
    return (this.#refillsUntil(at) + 1) * this.windowMs - this.#phaseMs;
  }

  #refillsUntil(at: number): number {
    return Math.floor((at + this.#phaseMs + TOLERANCE_MS) / this.windowMs);
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
