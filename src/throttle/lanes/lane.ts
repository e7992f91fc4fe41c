/** A limit of one operation: its governor decides when the operation's calls may go, beside that of the route. */
import type { LimitSet } from '../declared/limit-set.ts';
import type { LimitDecision, PermitGrant } from '../pacing/gate.ts';
import type { Governor } from '../pacing/governor.ts';
import { LaneGate } from '../queue/lane-gate.ts';
import type { ScopeOdds } from './scope-odds.ts';

export class Lane {
  readonly operation: string;
  readonly governor: Governor;
  readonly odds: ScopeOdds;
  lastRefusedAt = 0;
  refusedCount = 0;
  /** The limit held up the last call that asked, and not the route. */
  isHolding = false;
  /** Requests of the operation wait apart where different declared limits count them. */
  readonly #gates = new Map<LimitSet | undefined, LaneGate>();

  constructor(operation: string, governor: Governor, odds: ScopeOdds) {
    this.operation = operation;
    this.governor = governor;
    this.odds = odds;
  }

  gateOf(limits: LimitSet | undefined): LaneGate {
    const gate = this.#gates.get(limits) ?? new LaneGate(this.governor, limits);
    this.#gates.set(limits, gate);
    return gate;
  }
}

/** A permit of the route, and that of the lane where the operation has one. */
export interface LaneGrant extends PermitGrant {
  readonly lane?: { readonly lane: Lane; readonly grant: PermitGrant };
}

/** @property lane whose calls alone are paused. Default: all calls are */
export type LaneDecision = LimitDecision & { readonly lane?: Lane };
