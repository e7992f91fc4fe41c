/** One permit as an attempt holds it: calls in any order and number become exactly one result and one freed slot. */
import type { Clock } from '../../platform/clock.ts';
import type { SuspectStatus } from '../../telemetry/events.ts';
import type { RecordPermit } from '../../telemetry/request-record.ts';
import type { Lane, LaneDecision, LaneGrant } from '../lanes/lane.ts';
import type { LaneSet } from '../lanes/lane-set.ts';
import { ENDED } from './gate.ts';
import type { Governor } from './governor.ts';
import type { QueueTicket } from '../queue/queue-ticket.ts';
import type { ShadowCall } from '../queue/shadow.ts';
import type { ResponseTimes } from '../queue/response-times.ts';
import type { StalledPermit, StalledResponses } from '../queue/stalled-responses.ts';
import type { CutReason, PermitReport, Permit, RateLimitReport, ResponseClient } from '../throttle.ts';

/** The throttle, as a permit calls it. */
export interface PermitHost {
  readonly governor: Governor;
  readonly clock: Clock;
  readonly responseTimes: ResponseTimes;
  readonly stalledResponses: StalledResponses;
  readonly recordPermit: RecordPermit | undefined;
  readonly lanes: LaneSet;
  /** A refusal has begun or lengthened a pause; the governor already applies it. @param lane that it is of. Default: all calls pause */
  recordPause(report: RateLimitReport, pauseMs: number, stated: boolean, lane?: Lane): void;
  /** A bare response came that may be a refusal. */
  recordSuspect(status: SuspectStatus, isAssumed: boolean): void;
  /** A request waits for a permit, and every slot is taken. */
  readonly hasSlotWaiters: boolean;
  readonly isObserving: boolean;
  /** No request waits, no timer is set, and no fleet has to hear of idle slots. */
  readonly isQuiet: boolean;
  /** Slots, rate or pause may have changed: others may have their turn. To be called unless `isQuiet`. */
  pump(): void;
}

/** A call that is sent later had to wait for a connection. */
const PROMPT_MS = 5;

export class ActivePermit implements Permit, StalledPermit {
  readonly grantedAt: number;
  startedAt: number;
  /** The same call under limits that are enforced; undefined unless the throttle observes. */
  shadow: ShadowCall | undefined;
  #slot: StalledPermit['slot'] = 'in-flight';
  readonly #host: PermitHost;
  readonly #grant: LaneGrant;
  readonly #waitedMs: number;
  readonly #ticket: Pick<QueueTicket, 'endpoint' | 'middleAt'>;
  #isReported = false;
  #isSent = false;
  #isSpent = false;
  #isStalled = false;

  /**
   * @param waitedMs how long the request waited for it
   * @param ticket the request's
   */
  constructor(
    host: PermitHost,
    grant: LaneGrant,
    waitedMs: number,
    ticket: Pick<QueueTicket, 'endpoint' | 'middleAt'>,
  ) {
    this.#host = host;
    this.#grant = grant;
    this.#waitedMs = waitedMs;
    this.#ticket = ticket;
    this.grantedAt = this.startedAt = grant.at;
  }

  get slot(): StalledPermit['slot'] {
    return this.#slot;
  }

  markSent(): void {
    if (this.#isSent || this.#slot === 'freed') return;
    this.#isSent = true;
    this.shadow?.replay((permit) => permit.markSent());
    const { governor, clock } = this.#host;
    const { declared, lane } = this.#grant;
    if (declared !== undefined || lane !== undefined || governor.permits.rate < Infinity) {
      const now = clock.now();
      if (this.#grant.isObserved !== true) governor.permits.recordUse(now, this.grantedAt);
      lane?.lane.governor.permits.recordUse(now, this.grantedAt);
      if (declared !== undefined && now - this.grantedAt > PROMPT_MS) governor.declared?.recordSentLate(now, declared);
    }
    if (!this.#isSpent) this.#spend();
  }

  report(result: PermitReport, now = this.#host.clock.now()): number {
    if (this.#isReported || this.#slot === 'freed') return 0;
    this.#isReported = true;
    if (!this.#isSpent) this.#spend();
    const { governor } = this.#host;
    const { endpoint } = this.#ticket;
    if (result.kind === 'accepted') {
      // Refused calls take another time at the upstream.
      this.#host.responseTimes.record(now, endpoint, now - this.startedAt, true);
      governor.assumedRefusals.recordAccepted(this.grantedAt, endpoint);
    }
    // The response to a call that was not paced says nothing about a pace, nor does that to a paced one among others that are not.
    if (this.#grant.isObserved === true || this.#host.isObserving) {
      this.#reportObserved(now, result);
      return 0;
    }
    if (result.kind === 'suspect') {
      const { kind } = governor.settleSuspect(now, this.#grant, result, endpoint);
      this.#grant.lane?.lane.governor.settleUnreported(now, this.#grant.lane.grant, true);
      this.#host.lanes.recordEnded(this.#grant);
      this.#host.recordSuspect(result.status, kind === 'assumed');
      if (!this.#host.isQuiet) this.#host.pump();
      return 0;
    }
    const isOrdinary = !this.#host.lanes.isLearning && result.kind !== 'rate-limited';
    const decision: LaneDecision = isOrdinary
      ? governor.settle(now, this.#grant, result)
      : this.#host.lanes.settle(now, this.#grant, result, endpoint);
    if (decision.kind === 'limited' && result.kind === 'rate-limited')
      this.#host.recordPause(result, decision.pauseMs, decision.stated, decision.lane);
    if (!this.#host.isQuiet) this.#host.pump();
    return decision.kind === 'alone' ? decision.delayMs : 0;
  }

  #reportObserved(now: number, result: PermitReport): void {
    const { governor } = this.#host;
    const isRefused = isCertainRefusal(result);
    if (isRefused) governor.disregard(now, this.#grant);
    else governor.settleUnreported(now, this.#grant, true);
    governor.declared?.settle(now, this.#grant, { ...ENDED, kind: isRefused ? 'refused' : 'accepted' });
    // What else the response says holds for calls that were not paced.
    if (result.kind === 'accepted') this.shadow?.replay((permit) => permit.report({ kind: 'accepted' }));
    if (isRefused) this.#host.recordPause(result, 0, false);
    if (result.kind !== 'suspect') return;
    const suspicion = governor.assumedRefusals.recordSuspect(this.grantedAt, result.status, this.#ticket.endpoint);
    this.#host.recordSuspect(result.status, suspicion === 'assumed');
  }

  release(cut?: CutReason): void {
    if (this.#slot === 'freed') return;
    if (cut === 'other') this.shadow?.leave();
    else this.shadow?.replay((permit) => permit.release(cut));
    if (!this.#isReported) {
      const now = this.#host.clock.now();
      if (cut !== undefined) this.#host.responseTimes.record(now, this.#ticket.endpoint, now - this.startedAt, false);
      // A call that was left less than half of its deadline says nothing about the upstream, nor does one among any number.
      const isPaced = this.#grant.isObserved !== true;
      const isTimedOut = isPaced && cut === 'time-out' && this.startedAt <= this.#ticket.middleAt;
      const { lane } = this.#grant;
      this.#host.governor.settleUnreported(now, this.#grant, this.#isSent, isTimedOut);
      lane?.lane.governor.settleUnreported(now, lane.grant, this.#isSent, isTimedOut);
      this.#host.lanes.recordEnded(this.#grant);
    }
    if (!this.#isSpent) this.#spend();
    this.freeSlot();
    if (!this.#host.isQuiet) this.#host.pump();
  }

  cancel(): void {
    if (this.#slot === 'freed') return;
    this.shadow?.replay((permit) => permit.cancel());
    // With a response the permit has been spent, so there is nothing to give back.
    if (!this.#isReported) {
      const { lane } = this.#grant;
      const now = this.#host.clock.now();
      this.#host.governor.giveBack(now, this.#grant);
      lane?.lane.governor.giveBack(now, lane.grant);
      this.#host.lanes.recordEnded(this.#grant);
    }
    this.freeSlot();
    if (!this.#host.isQuiet) this.#host.pump();
  }

  becomeStream(): boolean {
    if (this.#slot !== 'in-flight') return this.#slot === 'stream';
    if (!this.moveToStreams()) return false;
    this.shadow?.replay((permit) => permit.becomeStream());
    if (!this.#host.isQuiet) this.#host.pump();
    return true;
  }

  /** As `becomeStream` for a slot in flight, but no other request has its turn yet. */
  moveToStreams(): boolean {
    if (!this.#host.governor.moveSlotToStreams()) return false;
    this.#grant.lane?.lane.governor.freeSlot();
    this.#slot = 'stream';
    return true;
  }

  recordClientWait(until: number): void {
    if (until <= this.startedAt) return;
    this.startedAt = this.#grant.startedAt = until;
    this.shadow?.replay((permit) => permit.recordClientWait(permit.grantedAt + until - this.grantedAt));
    if (this.#grant.lane !== undefined) this.#grant.lane.grant.startedAt = until;
  }

  recordStall(client: ResponseClient): void {
    if (this.#slot === 'freed' || this.#isStalled) return;
    this.#isStalled = true;
    const { stalledResponses, clock, hasSlotWaiters } = this.#host;
    stalledResponses.begin(this, client, clock.now(), hasSlotWaiters);
  }

  recordStallEnd(): void {
    if (!this.#isStalled) return;
    this.#isStalled = false;
    this.#host.stalledResponses.end(this);
  }

  reportStalledUpload(): boolean {
    return this.#slot !== 'in-flight' || !this.#host.hasSlotWaiters || this.becomeStream();
  }

  #spend(): void {
    this.#isSpent = true;
    this.#host.recordPermit?.(this.#waitedMs);
  }

  /** No other request has its turn yet. */
  freeSlot(): void {
    if (this.#isStalled) this.recordStallEnd();
    if (this.#slot === 'stream') {
      this.#host.governor.freeStream();
    } else {
      this.#host.governor.freeSlot();
      this.#grant.lane?.lane.governor.freeSlot();
    }
    this.#slot = 'freed';
  }
}

/** A 503 with `Retry-After` alone may come from a node that shuts down. */
function isCertainRefusal(result: PermitReport): result is RateLimitReport {
  return result.kind === 'rate-limited' && (result.signal.status !== 503 || result.isConfigured === true);
}
