/** The limits of one operation, as far as they let its calls go (pure): those that are declared, and the one that was learned. */
import type { LimitSet } from '../declared/limit-set.ts';
import { ANY_CALL } from '../pacing/gate.ts';
import type { Governor } from '../pacing/governor.ts';

export class LaneGate {
  /** Keeps to the limit that was learned; undefined where it is declared only. */
  readonly governor: Governor | undefined;
  readonly #limits: LimitSet | undefined;

  /** @param limits declared ones of the operation */
  constructor(governor: Governor | undefined, limits: LimitSet | undefined) {
    this.governor = governor;
    this.#limits = limits;
  }

  /** Requests wait for the gate. */
  recordHeld(now: number): void {
    // Waiting for a declared limit says nothing about the learned one.
    if (this.governor !== undefined && this.governor.nextAt(now, ANY_CALL) > now) this.governor.recordHeld(now);
  }

  /** When a call may go; a past instant or -Infinity: now. Infinity when another event has to open the gate. */
  nextAt(now: number, isHigh: boolean): number {
    const governedAt = this.governor?.nextAt(now, ANY_CALL) ?? -Infinity;
    // Asks the store for permits where they are missing.
    if (this.#limits === undefined || this.#limits.isOpen(now, isHigh)) return governedAt;
    return Math.max(governedAt, this.#limits.nextAt(now, isHigh));
  }
}
