/**
 * One permit in the hands of an attempt: turns what the attempt tells, in whatever order and however often, into exactly one
 * result and exactly one freed slot.
 */
import type { Gate } from './gate.ts';
import type { Verdict } from './governor-contract.ts';
import type { Grant } from './grant.ts';
import type { AttemptResult, Permit } from '../throttle.ts';

/** What a permit needs of its throttle. */
export interface PermitOwner {
  readonly gate: Gate;
  now(): number;
  /** A rate limit was judged; the gate already knows. */
  judged(result: AttemptResult, verdict: Verdict): void;
  /** A permit is spent for good, after a wait of so many milliseconds. */
  spent(waitedMs: number): void;
  /** A request waits for a permit, and every slot is taken. */
  readonly waitsForSlot: boolean;
  /** Slots, pace or pause may have changed: others may have their turn. */
  pump(): void;
}

/** A permit as typed: late, repeated and contradictory calls do nothing. */
export class GrantedPermit implements Permit {
  readonly #owner: PermitOwner;
  readonly #grant: Grant;
  #slot: 'in-flight' | 'stream' | 'freed' = 'in-flight';
  #reported = false;
  #used = false;
  #isTold = false;
  readonly #waitedMs: number;

  /** @param waitedMs how long it was waited for */
  constructor(owner: PermitOwner, grant: Grant, waitedMs: number) {
    this.#owner = owner;
    this.#grant = grant;
    this.#waitedMs = waitedMs;
  }

  get grantedAt(): number {
    return this.#grant.at;
  }

  used(): void {
    if (this.#used || this.#slot === 'freed') return;
    this.#used = true;
    this.#owner.gate.used(this.#owner.now(), this.#grant);
    this.#tellSpent();
  }

  report(result: AttemptResult): void {
    if (this.#reported || this.#slot === 'freed') return;
    this.#reported = true;
    this.#tellSpent();
    const verdict = this.#owner.gate.report(this.#owner.now(), this.#grant, result);
    this.#owner.judged(result, verdict);
    this.#owner.pump();
  }

  release(): void {
    if (this.#slot === 'freed') return;
    if (!this.#reported) this.#owner.gate.endUnreported(this.#owner.now(), this.#grant);
    this.#tellSpent();
    this.#free();
  }

  cancel(): void {
    if (this.#slot === 'freed') return;
    // A permit whose attempt was answered has been spent, whatever its holder thinks.
    if (!this.#reported) this.#owner.gate.takeBack(this.#owner.now(), this.#grant);
    this.#free();
  }

  becomeStream(): boolean {
    if (this.#slot !== 'in-flight') return this.#slot === 'stream';
    if (!this.#owner.gate.moveSlotToStreams()) return false;
    this.#slot = 'stream';
    this.#owner.pump();
    return true;
  }

  stalled(): boolean {
    return this.#slot !== 'in-flight' || !this.#owner.waitsForSlot || this.becomeStream();
  }

  /** A permit that is given back unspent is never told of. */
  #tellSpent(): void {
    if (!this.#isTold) this.#owner.spent(this.#waitedMs);
    this.#isTold = true;
  }

  #free(): void {
    if (this.#slot === 'stream') this.#owner.gate.freeStream();
    else this.#owner.gate.freeSlot();
    this.#slot = 'freed';
    this.#owner.pump();
  }
}
