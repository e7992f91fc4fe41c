/**
 * The limiters of the simulated servers, created from a specification in a scenario file. Each accepts or refuses calls by the instant of
 * their arrival, and states its limit in its hint style. Pure; the rules are in window-, rate-, joined- and chance-limiters.
 */
import { BalancedNodes, type CallCost, WeightedCalls } from './chance-limiters.ts';
import { type HintStyle, writeHints, type ResponseHeaders } from './hints.ts';
import { AllOf, Banning, type BanRule, SharedWithTenant, Steps } from './joined-limiters.ts';
import { type LimiterModel, TOLERANCE_MS } from './limiter-model.ts';
import {
  type BucketQuota,
  BulkRefill,
  type BulkQuota,
  CellRate,
  type CellRateQuota,
  InFlightLimit,
  TokenBucket,
} from './rate-limiters.ts';
import { createRandom } from './seeded.ts';
import {
  FirstCallWindow,
  FixedWindow,
  SlidingCounter,
  SlidingLog,
  SlottedWindow,
  type SlotQuota,
  type WindowQuota,
} from './window-limiters.ts';

/** The hidden rule, as a scenario file has it. Durations in milliseconds. */
export type LimiterRule =
  | ({ readonly kind: 'fixed-window' } & WindowQuota)
  | ({ readonly kind: 'first-call-window' } & Omit<WindowQuota, 'phaseMs'>)
  | ({ readonly kind: 'sliding-log' } & Omit<WindowQuota, 'phaseMs'>)
  | ({ readonly kind: 'sliding-counter' } & WindowQuota)
  | ({ readonly kind: 'slotted-window' } & SlotQuota)
  | ({ readonly kind: 'token-bucket' } & BucketQuota)
  | ({ readonly kind: 'gcra' } & CellRateQuota)
  | ({ readonly kind: 'bulk-refill' } & BulkQuota)
  | { readonly kind: 'concurrency'; readonly calls: number }
  | { readonly kind: 'all-of'; readonly limiters: readonly LimiterRule[] }
  | { readonly kind: 'steps'; readonly steps: readonly { readonly fromMs: number; readonly limiter: LimiterRule }[] }
  | { readonly kind: 'tenant'; readonly limiter: LimiterRule; readonly share: number; readonly seed: number }
  | {
      readonly kind: 'weighted';
      readonly limiter: LimiterRule;
      readonly costs: readonly CallCost[];
      readonly seed: number;
    }
  | ({ readonly kind: 'nodes'; readonly limiter: LimiterRule } & NodesRule)
  | ({ readonly kind: 'ban'; readonly limiter: LimiterRule } & BanRule);

/** Nodes with this limiter each. */
export interface NodesRule {
  readonly nodes: number;
  /** How the balancer chooses. */
  readonly choice: 'turns' | 'random';
  readonly seed: number;
}

/** A limiter with the form of its responses. */
export interface LimiterSpec {
  readonly limiter: LimiterRule;
  /** The status of a refusal. Default 429. */
  readonly status?: number;
  /** Default `none`. */
  readonly hint?: HintStyle;
  /** How long a call stays at the server on average: a limit on calls in flight needs it for its rate. Default 10. */
  readonly meanServiceMs?: number;
  /** The time of day at the start of the run, by our clock. Default 0: midnight. */
  readonly startsMs?: number;
  /** Refuses calls that the rule accepts, and does not count them. Default: never. */
  readonly refusesAtRandom?: () => boolean;
}

/** The limiter's response to one call. */
export interface LimiterResponse {
  readonly accepted: boolean;
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** How long the call waits at the server before it is served. Default 0. */
  readonly heldMs?: number;
}

export interface Limiter {
  readonly model: LimiterModel;
  /** @param inFlightAtServer accepted calls whose response has not left yet */
  evaluate(at: number, inFlightAtServer: number): LimiterResponse;
  /**
   * Calls that it admits in that time to a client that is always at the limit. Saved-up permits at the edges add at most
   * `model.burst`.
   */
  capacity(fromMs: number, toMs: number): number;
}

/** The day of every run, epoch milliseconds. */
export const DAY_STARTS_AT = Date.UTC(2026, 10, 1);

export function create(spec: LimiterSpec): Limiter {
  return new SimulatedLimiter(spec);
}

const ACCEPTED: LimiterResponse = { accepted: true, status: 200, headers: {} };

class SimulatedLimiter implements Limiter {
  readonly model: LimiterModel;
  readonly #status: number;
  readonly #hint: HintStyle;
  readonly #wallStartMs: number;
  readonly #refusesAtRandom: () => boolean;
  readonly #limit: number;
  readonly #windowMs: number;

  constructor(spec: LimiterSpec) {
    const { limiter, status = 429, hint = 'none', meanServiceMs = 10, startsMs = 0, refusesAtRandom = never } = spec;
    this.model = createModel(limiter, { meanServiceMs, startsMs });
    this.#status = status;
    this.#refusesAtRandom = refusesAtRandom;
    this.#hint = hint;
    this.#wallStartMs = DAY_STARTS_AT + startsMs + phaseOf(limiter);
    this.#limit = statedLimit(limiter);
    // A bucket states its burst, and the time in which the burst refills.
    this.#windowMs = this.model.windowMs > 0 ? this.model.windowMs : this.#limit / this.model.rateAt(0);
  }

  evaluate(at: number, inFlightAtServer: number): LimiterResponse {
    const { model } = this;
    const isWithinLimit = model.nextAt(at, inFlightAtServer) <= at + TOLERANCE_MS;
    const accepted = isWithinLimit && !this.#refusesAtRandom();
    const heldMs = accepted ? (model.heldMs?.(at) ?? 0) : 0;
    if (accepted) model.take(at);
    else if (!isWithinLimit) model.refuse(at);
    if (accepted && this.#hint === 'none') return heldMs === 0 ? ACCEPTED : { ...ACCEPTED, heldMs };
    const fields = writeHints(this.#hint, {
      at,
      wallAt: this.#wallStartMs + at,
      accepted,
      retryAt: accepted ? at : model.nextAt(at, inFlightAtServer),
      allowance: this.#hint.startsWith('retry-after') ? undefined : model.allowance(at),
      limit: this.#limit,
      windowMs: this.#windowMs,
    });
    return { accepted, status: accepted ? 200 : (model.status ?? this.#status), headers: fields, heldMs };
  }

  capacity(fromMs: number, toMs: number): number {
    return this.model.capacity(fromMs, toMs);
  }
}

function never(): boolean {
  return false;
}

interface Setting {
  readonly meanServiceMs: number;
  readonly startsMs: number;
}

function createModel(rule: LimiterRule, setting: Setting): LimiterModel {
  const create = (inner: LimiterRule): LimiterModel => createModel(inner, setting);
  switch (rule.kind) {
    case 'fixed-window':
      return new FixedWindow(since(rule, setting));
    case 'first-call-window':
      return new FirstCallWindow(rule);
    case 'sliding-log':
      return new SlidingLog(rule);
    case 'sliding-counter':
      return new SlidingCounter(since(rule, setting));
    case 'slotted-window':
      return new SlottedWindow({ ...rule, ...since(rule, setting) });
    case 'token-bucket':
      return new TokenBucket(rule);
    case 'gcra':
      return new CellRate(rule);
    case 'bulk-refill':
      return new BulkRefill({ ...rule, phaseMs: (rule.phaseMs ?? 0) + setting.startsMs });
    case 'concurrency':
      return new InFlightLimit(rule.calls, setting.meanServiceMs);
    case 'all-of':
      return new AllOf(rule.limiters.map(create));
    case 'steps':
      return new Steps(rule.steps.map(({ fromMs, limiter }) => ({ fromMs, model: create(limiter) })));
    case 'tenant':
      return new SharedWithTenant(create(rule.limiter), rule.share, createRandom(rule.seed, 'tenant'));
    case 'weighted':
      return new WeightedCalls(create(rule.limiter), rule.costs, createRandom(rule.seed, 'cost'));
    case 'nodes':
      return new BalancedNodes(
        Array.from({ length: rule.nodes }, () => create(rule.limiter)),
        rule.choice === 'turns' ? undefined : createRandom(rule.seed, 'node'),
      );
    case 'ban':
      return new Banning(create(rule.limiter), rule);
  }
}

/** Windows lie where the server's time of day puts them. */
function since(quota: WindowQuota, { startsMs }: Setting): WindowQuota {
  return { ...quota, phaseMs: (quota.phaseMs ?? 0) + startsMs };
}

/** How many calls the server would say it allows. */
function statedLimit(rule: LimiterRule): number {
  switch (rule.kind) {
    case 'token-bucket':
    case 'gcra':
    case 'bulk-refill':
      return rule.burst;
    case 'all-of':
      return Math.min(...rule.limiters.map(statedLimit));
    case 'steps':
      return statedLimit(firstStep(rule.steps));
    case 'tenant':
    case 'weighted':
    case 'nodes':
    case 'ban':
      return statedLimit(rule.limiter);
    default:
      return rule.calls;
  }
}

function phaseOf(rule: LimiterRule): number {
  switch (rule.kind) {
    case 'fixed-window':
    case 'sliding-counter':
    case 'slotted-window':
    case 'bulk-refill':
      return rule.phaseMs ?? 0;
    case 'all-of':
      return Math.max(0, ...rule.limiters.map(phaseOf));
    case 'steps':
      return phaseOf(firstStep(rule.steps));
    case 'tenant':
    case 'weighted':
    case 'nodes':
    case 'ban':
      return phaseOf(rule.limiter);
    default:
      return 0;
  }
}

function firstStep(steps: readonly { readonly limiter: LimiterRule }[]): LimiterRule {
  const first = steps[0];
  if (first === undefined) throw new RangeError('a limiter of steps needs at least one');
  return first.limiter;
}
