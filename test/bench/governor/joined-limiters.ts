/**
 * Limiters made of others: several at once, one after another, one that is shared with another client, and one that bans a client after
 * too many refusals.
 */
import type { Random } from '../../../src/platform/clock.ts';
import { type Allowance, type LimiterModel, TOLERANCE_MS } from './limiter-model.ts';

/** All of them must accept; a call that one refuses counts in none. */
export class AllOf implements LimiterModel {
  readonly burst: number;
  readonly windowMs: number;
  readonly #models: readonly LimiterModel[];

  constructor(models: readonly LimiterModel[]) {
    this.#models = models;
    this.burst = Math.max(...models.map((model) => model.burst));
    this.windowMs = Math.max(...models.map((model) => model.windowMs));
  }

  nextAt(at: number, inFlight: number): number {
    let next = at;
    for (const model of this.#models) next = Math.max(next, model.nextAt(at, inFlight));
    return next;
  }

  take(at: number): void {
    for (const model of this.#models) model.take(at);
  }

  refuse(at: number): void {
    for (const model of this.#models) model.refuse(at);
  }

  rateAt(at: number): number {
    return Math.min(...this.#models.map((model) => model.rateAt(at)));
  }

  capacity(fromMs: number, toMs: number): number {
    return Math.min(...this.#models.map((model) => model.capacity(fromMs, toMs)));
  }

  allowance(at: number): Allowance | undefined {
    const said = this.#models.map((model) => model.allowance(at)).filter((allowance) => allowance !== undefined);
    return said.toSorted((a, b) => a.remaining - b.remaining || b.resetAt - a.resetAt)[0];
  }
}

/** One limiter from an instant on. */
export interface Step {
  readonly fromMs: number;
  readonly model: LimiterModel;
}

/** One limiter after another; each starts unused. */
export class Steps implements LimiterModel {
  readonly burst: number;
  readonly windowMs: number;
  readonly #steps: readonly Step[];

  /** @param steps in order of time, the first from 0 */
  constructor(steps: readonly Step[]) {
    this.#steps = steps;
    this.burst = steps.reduce((sum, { model }) => sum + model.burst, 0);
    this.windowMs = Math.max(...steps.map(({ model }) => model.windowMs));
  }

  nextAt(at: number, inFlight: number): number {
    let index = this.#indexAt(at);
    let from = at;
    for (;;) {
      const endsAt = this.#steps[index + 1]?.fromMs ?? Infinity;
      const next = this.#model(index).nextAt(from, inFlight);
      if (next < endsAt || endsAt === Infinity) return next;
      from = endsAt;
      index++;
    }
  }

  take(at: number): void {
    this.#at(at).take(at);
  }

  refuse(at: number): void {
    this.#at(at).refuse(at);
  }

  rateAt(at: number): number {
    return this.#at(at).rateAt(at);
  }

  capacity(fromMs: number, toMs: number): number {
    let sum = 0;
    for (const [index, step] of this.#steps.entries()) {
      const from = Math.max(fromMs, step.fromMs);
      const to = Math.min(toMs, this.#steps[index + 1]?.fromMs ?? Infinity);
      if (from < to) sum += step.model.capacity(from, to);
    }
    return sum;
  }

  allowance(at: number): Allowance | undefined {
    return this.#at(at).allowance(at);
  }

  #at(at: number): LimiterModel {
    return this.#model(this.#indexAt(at));
  }

  #indexAt(at: number): number {
    return Math.max(
      0,
      this.#steps.findLastIndex((step) => step.fromMs <= at),
    );
  }

  #model(index: number): LimiterModel {
    const step = this.#steps[index];
    if (step === undefined) throw new RangeError('a limiter of steps needs one that starts at 0');
    return step.model;
  }
}

/** Another client of the same limiter; its calls come at random, and those that are refused are not repeated. */
export class SharedWithTenant implements LimiterModel {
  readonly #model: LimiterModel;
  readonly #share: number;
  readonly #random: Random;
  #tenantAt: number;

  /** @param share of the limit that the other client asks for, below 1 */
  constructor(model: LimiterModel, share: number, random: Random) {
    this.#model = model;
    this.#share = share;
    this.#random = random;
    this.#tenantAt = this.#gapAt(0);
  }

  get burst(): number {
    return this.#model.burst;
  }

  get windowMs(): number {
    return this.#model.windowMs;
  }

  nextAt(at: number, inFlight: number): number {
    this.#playTenant(at);
    return this.#model.nextAt(at, inFlight);
  }

  take(at: number): void {
    this.#playTenant(at);
    this.#model.take(at);
  }

  refuse(at: number): void {
    this.#playTenant(at);
    this.#model.refuse(at);
  }

  rateAt(at: number): number {
    return this.#model.rateAt(at) * (1 - this.#share);
  }

  capacity(fromMs: number, toMs: number): number {
    return this.#model.capacity(fromMs, toMs) * (1 - this.#share);
  }

  allowance(at: number): Allowance | undefined {
    this.#playTenant(at);
    return this.#model.allowance(at);
  }

  /** Everything that the other client did up to an instant. */
  #playTenant(until: number): void {
    while (this.#tenantAt <= until) {
      const at = this.#tenantAt;
      if (this.#model.nextAt(at, 0) <= at + TOLERANCE_MS) this.#model.take(at);
      else this.#model.refuse(at);
      this.#tenantAt = at + this.#gapAt(at);
    }
  }

  #gapAt(at: number): number {
    return -Math.log(1 - this.#random()) / (this.#model.rateAt(at) * this.#share);
  }
}

/** When a client is banned, and for how long. */
export interface BanRule {
  /** Refusals that cause a ban. */
  readonly refusals: number;
  /** Time within which they must occur. */
  readonly withinMs: number;
  /** Time in which every call is refused. */
  readonly banMs: number;
  /** The status of refusals during the ban. Default: that of other refusals. */
  readonly status?: number;
}

/** A limiter with bans. Refusals during a ban do not extend it. */
export class Banning implements LimiterModel {
  readonly #model: LimiterModel;
  readonly #rule: BanRule;
  #refusedAt: number[] = [];
  #bannedUntil = -Infinity;
  #isBanResponse = false;

  constructor(model: LimiterModel, rule: BanRule) {
    this.#model = model;
    this.#rule = rule;
  }

  get burst(): number {
    return this.#model.burst;
  }

  get windowMs(): number {
    return this.#model.windowMs;
  }

  get status(): number | undefined {
    return this.#isBanResponse ? this.#rule.status : undefined;
  }

  nextAt(at: number, inFlight: number): number {
    return this.#model.nextAt(Math.max(at, this.#bannedUntil), inFlight);
  }

  take(at: number): void {
    this.#model.take(at);
  }

  refuse(at: number): void {
    this.#isBanResponse = at < this.#bannedUntil;
    if (this.#isBanResponse) return;
    this.#model.refuse(at);
    this.#refusedAt = this.#refusedAt.filter((instant) => instant > at - this.#rule.withinMs);
    this.#refusedAt.push(at);
    if (this.#refusedAt.length < this.#rule.refusals) return;
    this.#bannedUntil = at + this.#rule.banMs;
    this.#refusedAt = [];
  }

  rateAt(at: number): number {
    return this.#model.rateAt(at);
  }

  capacity(fromMs: number, toMs: number): number {
    return this.#model.capacity(fromMs, toMs);
  }

  allowance(at: number): Allowance | undefined {
    return at < this.#bannedUntil ? { remaining: 0, resetAt: this.#bannedUntil } : this.#model.allowance(at);
  }
}
