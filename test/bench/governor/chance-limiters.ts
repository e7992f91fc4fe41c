/**
 * Limiters in which chance decides: calls of different cost, and nodes that count alone behind a load balancer. Pure: the draws come from
 * the caller's source.
 */
import type { Random } from '../../../src/platform/clock.ts';
import { type Allowance, type CountedModel, type LimiterModel, TOLERANCE_MS } from './limiter-model.ts';

/** A share of the calls costs this number of permits. */
export interface CallCost {
  readonly permits: number;
  /** All shares add up to 1. */
  readonly share: number;
}

/** Calls that take different numbers of permits out of one limit. A refused call is repeated first, so the next call costs the same. */
export class WeightedCalls implements LimiterModel {
  readonly #model: LimiterModel;
  readonly #costs: readonly CallCost[];
  readonly #random: Random;
  readonly #mean: number;
  #nextPermits: number;

  /** @throws RangeError when the limit is too small for a call, or the model cannot state what is left of it */
  constructor(model: LimiterModel, costs: readonly CallCost[], random: Random) {
    this.#model = model;
    this.#costs = costs;
    this.#random = random;
    this.#mean = costs.reduce((sum, { permits, share }) => sum + permits * share, 0);
    const largest = Math.max(...costs.map(({ permits }) => permits));
    if (!((model.allowance(0)?.remaining ?? 0) >= largest)) throw new RangeError('a call costs more than the limit');
    this.#nextPermits = this.#draw();
  }

  get burst(): number {
    return this.#model.burst;
  }

  get windowMs(): number {
    return this.#model.windowMs;
  }

  nextAt(at: number): number {
    let next = at;
    for (;;) {
      const allowance = this.#model.allowance(next);
      if (allowance === undefined || allowance.remaining >= this.#nextPermits) return next;
      next = allowance.resetAt;
    }
  }

  take(at: number): void {
    for (let permit = 0; permit < this.#nextPermits; permit++) this.#model.take(at);
    this.#nextPermits = this.#draw();
  }

  refuse(at: number): void {
    for (let permit = 0; permit < this.#nextPermits; permit++) this.#model.refuse(at);
  }

  rateAt(at: number): number {
    return this.#model.rateAt(at) / this.#mean;
  }

  capacity(fromMs: number, toMs: number): number {
    return this.#model.capacity(fromMs, toMs) / this.#mean;
  }

  allowance(): undefined {
    return undefined;
  }

  #draw(): number {
    let left = this.#random();
    for (const { permits, share } of this.#costs) {
      left -= share;
      if (left < 0) return permits;
    }
    return this.#costs.at(-1)?.permits ?? 1;
  }
}

/** Equal nodes, of which the balancer chooses one for each attempt; each node counts its own calls only. */
export class BalancedNodes implements LimiterModel {
  readonly burst: number;
  readonly windowMs: number;
  readonly #nodes: readonly LimiterModel[];
  readonly #random: Random | undefined;
  #chosen = 0;

  /** @param random chooses the nodes. Default: they take turns */
  constructor(nodes: readonly LimiterModel[], random?: Random) {
    this.#nodes = nodes;
    this.#random = random;
    this.burst = sumOf(nodes, ({ burst }) => burst);
    this.windowMs = Math.max(...nodes.map(({ windowMs }) => windowMs));
    this.#choose();
  }

  nextAt(at: number, inFlight: number): number {
    return this.#node().nextAt(at, inFlight);
  }

  take(at: number): void {
    this.#node().take(at);
    this.#choose();
  }

  refuse(at: number): void {
    this.#node().refuse(at);
    this.#choose();
  }

  rateAt(at: number): number {
    return sumOf(this.#nodes, (node) => node.rateAt(at));
  }

  capacity(fromMs: number, toMs: number): number {
    return sumOf(this.#nodes, (node) => node.capacity(fromMs, toMs));
  }

  allowance(at: number): Allowance | undefined {
    return this.#node().allowance(at);
  }

  withBestChoices(): CountedModel {
    return new BestNode(this.#nodes);
  }

  #node(): LimiterModel {
    const node = this.#nodes[this.#chosen];
    if (node === undefined) throw new RangeError('a balancer needs a node');
    return node;
  }

  #choose(): void {
    const { length } = this.#nodes;
    this.#chosen = this.#random === undefined ? (this.#chosen + 1) % length : Math.floor(this.#random() * length);
  }
}

/** The nodes, for a client that chooses one of those that accept: the one with the most left. */
class BestNode implements CountedModel {
  readonly #nodes: readonly LimiterModel[];

  constructor(nodes: readonly LimiterModel[]) {
    this.#nodes = nodes;
  }

  nextAt(at: number, inFlight: number): number {
    return Math.min(...this.#nodes.map((node) => node.nextAt(at, inFlight)));
  }

  take(at: number): void {
    const open = this.#nodes.filter((node) => node.nextAt(at, 0) <= at + TOLERANCE_MS);
    const left = (node: LimiterModel): number => node.allowance(at)?.remaining ?? 0;
    open.toSorted((one, other) => left(other) - left(one))[0]?.take(at);
  }
}

function sumOf(models: readonly LimiterModel[], read: (model: LimiterModel) => number): number {
  return models.reduce((sum, model) => sum + read(model), 0);
}
