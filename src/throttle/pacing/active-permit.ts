/**
 * One permit in the hands of an attempt: turns what the attempt tells, in whatever order and however often, into exactly one
 * result and exactly one freed slot.
 */
import type { PermitGate } from './permit-gate.ts';
import type { LimitDecision } from './governor-contract.ts';
import type { PermitGrant } from './permit-grant.ts';
import type { PermitReport, Permit } from '../throttle.ts';

/** What a permit needs of its throttle. */
export interface PermitHost {
  readonly gate: PermitGate;
  now(): number;
  /** A rate limit was judged; the gate already knows. */
  recordDecision(result: PermitReport, verdict: LimitDecision): void;
  /** A permit is spent for good, after a wait of so many milliseconds. */
  recordSpentPermit(waitedMs: number): void;
  /** A request waits for a permit, and every slot is taken. */
  readonly hasSlotWaiters: boolean;
  /** Slots, pace or pause may have changed: others may have their turn. */
  pump(): void;
}

/** A permit as typed: late, repeated and contradictory calls do nothing. */
export class ActivePermit implements Permit {
  readonly #host: PermitHost;
  readonly #grant: PermitGrant;
  #slot: 'in-flight' | 'stream' | 'freed' = 'in-flight';
  #isReported = false;
  #isSent = false;
  #isSpentReported = false;
  readonly #waitedMs: number;

  /** @param waitedMs how long it was waited for */
  constructor(owner: PermitHost, grant: PermitGrant, waitedMs: number) {
    this.#host = owner;
    this.#grant = grant;
    this.#waitedMs = waitedMs;
  }

  get grantedAt(): number {
    return this.#grant.at;
  }

  markSent(): void {
    if (this.#isSent || this.#slot === 'freed') return;
    this.#isSent = true;
    this.#host.gate.recordSent(this.#host.now(), this.#grant);
    this.#reportSpent();
  }

  report(result: PermitReport): void {
    if (this.#isReported || this.#slot === 'freed') return;
    this.#isReported = true;
    this.#reportSpent();
    const verdict = this.#host.gate.report(this.#host.now(), this.#grant, result);
    this.#host.recordDecision(result, verdict);
    this.#host.pump();
  }

  release(): void {
    if (this.#slot === 'freed') return;
    if (!this.#isReported) this.#host.gate.endWithoutResult(this.#host.now(), this.#grant);
    this.#reportSpent();
    this.#freeSlot();
  }

  cancel(): void {
    if (this.#slot === 'freed') return;
    // A permit whose attempt was answered has been spent, whatever its holder thinks.
    if (!this.#isReported) this.#host.gate.giveBack(this.#host.now(), this.#grant);
    this.#freeSlot();
  }

  becomeStream(): boolean {
    if (this.#slot !== 'in-flight') return this.#slot === 'stream';
    if (!this.#host.gate.moveSlotToStreams()) return false;
    this.#slot = 'stream';
    this.#host.pump();
    return true;
  }

  reportStalledUpload(): boolean {
    return this.#slot !== 'in-flight' || !this.#host.hasSlotWaiters || this.becomeStream();
  }

  /** A permit that is given back unspent is never told of. */
  #reportSpent(): void {
    if (!this.#isSpentReported) this.#host.recordSpentPermit(this.#waitedMs);
    this.#isSpentReported = true;
  }

  #freeSlot(): void {
    if (this.#slot === 'stream') this.#host.gate.freeStream();
    else this.#host.gate.freeSlot();
    this.#slot = 'freed';
    this.#host.pump();
  }
}
