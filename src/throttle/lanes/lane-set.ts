/**
 * The operations of one route (pure): which limits hold back their calls, and which of them the refusals fall on. Limits that hold for one
 * operation only are learned from refusals: a lane is a governor for one operation under the route's, and its calls need a permit of both.
 *
 * By default an operation gets a lane when the refusals have shown that they fall on it alone. With `throttle.lanes: true` its first refusal
 * opens an inquest: the operation gets a lane, which pauses, and the calls of other operations go one at a time, as witnesses. One that is
 * accepted speaks for a limit of the operation; a third operation that is refused shows that it is the route's, which then learns of all of
 * them. The odds decide, and not one witness: with a limit for all, a permit may have come between the two calls.
 */
import type { Random } from '../../platform/clock.ts';
import type { LimitSet } from '../declared/limit-set.ts';
import { ANY_CALL, type PacedCall } from '../pacing/gate.ts';
import { Governor } from '../pacing/governor.ts';
import { LaneGate } from '../queue/lane-gate.ts';
import type { QueueTicket } from '../queue/queue-ticket.ts';
import type { RequestQueue } from '../queue/request-queue.ts';
import type { ResponseTimes } from '../queue/response-times.ts';
import type { LaneState, LearnedLane, PermitReport, RateLimitReport, RateSettings } from '../throttle.ts';
import { Inquest } from './inquest.ts';
import { Lane, type LaneDecision, type LaneGrant } from './lane.ts';
import { RefusedOperations } from './refused-operations.ts';

export const MAX_LANES = 16;
/** So many closures of the last operation without a lane are the route's: a rest of the calls and all of them look alike. */
const MAX_CLOSURES_OF_LAST = 4;
/** Operations without an accepted call for so long are no witnesses. */
const RECENT_MS = 10_000;
/** A known limit that is used to this share explains a refusal. */
const EXPLAINING_SHARE = 0.8;
/** Odds that refusals which the route's learned limit explains fall on the operation alone, in bits. */
const OWN_BITS = 6;
/** Odds from which on an operation gets a lane without an inquest. */
const SHOWN_BITS = 10;
/** After each inquest that found for the route, twice as many refusals have to come before the next. */
const MAX_DOUBLINGS = 8;
/** A lane without a refusal for so long goes when another one is wanted. */
const IDLE_MS = 600_000;

export interface LaneSetOptions {
  readonly route: Governor;
  readonly times: ResponseTimes;
  readonly queue: RequestQueue;
  readonly settings: () => RateSettings;
  readonly random: Random;
}

export class LaneSet {
  /** A refusal may be that of one operation only: from the first one on with `throttle.lanes: true`, or from the first lane on. */
  isLearning = false;
  readonly #options: LaneSetOptions;
  readonly #refused: RefusedOperations;
  readonly #lanes = new Map<string, Lane>();
  /** By declared limits, for operations whose limits are declared only. */
  readonly #gates = new WeakMap<LimitSet, LaneGate>();
  #inquest: Inquest | undefined;
  #refusalCount = 0;
  #routeVerdicts = 0;
  #nextInquestAt = 0;
  /** The route has learned from refusals of this operation while no other one was known. */
  #onlyOperation: string | undefined;

  constructor(options: LaneSetOptions) {
    this.#options = options;
    this.#refused = new RefusedOperations(() => options.times.listAccepted());
    if (this.#mayTest) options.times.keepCalls();
  }

  /** The only operation that the refusals fall on; undefined while that is not certain. */
  get refusedOperation(): string | undefined {
    return this.#refused.only;
  }

  /** The limits of the call's operation; undefined where none is its own. */
  gateOf({ endpoint, operationLimits }: PacedCall & { readonly endpoint: string }): LaneGate | undefined {
    if (this.#options.settings().mode === 'observe') return undefined;
    const lane = this.#lanes.get(endpoint);
    if (lane !== undefined) return lane.gateOf(operationLimits);
    if (operationLimits === undefined) return undefined;
    const gate = this.#gates.get(operationLimits) ?? new LaneGate(undefined, operationLimits);
    this.#gates.set(operationLimits, gate);
    return gate;
  }

  /** When calls of other operations than the tested one may go again; a past instant or -Infinity: now. */
  heldUpUntil(lane: Lane | undefined): number {
    const inquest = this.#inquest;
    if (inquest === undefined || (lane !== undefined && inquest.lanes.has(lane))) return -Infinity;
    return inquest.heldUpUntil;
  }

  /** As the governor's. */
  tryTake(now: number, hasWaited: boolean, call: QueueTicket): LaneGrant | undefined {
    if (this.#options.settings().mode === 'observe') return this.takeObserved(now, call);
    const lane = this.#lanes.get(call.endpoint);
    if (this.heldUpUntil(lane) > now) return undefined;
    const grant =
      lane === undefined
        ? this.#options.route.tryTake(now, hasWaited, call)
        : this.#takeBoth(now, hasWaited, call, lane);
    if (grant !== undefined && (lane === undefined || this.#inquest?.lanes.has(lane) === false))
      this.#inquest?.recordWitness(grant);
    return grant;
  }

  /** The call goes, and counts for all limits. */
  takeObserved(now: number, call: QueueTicket): LaneGrant {
    const { route } = this.#options;
    route.permits.tryTake(now);
    route.takeSlot();
    return { ...route.take(now, false, call), isObserved: true };
  }

  /** As the governor's; to be called for refusals, and for every response while `isLearning`. */
  settle(now: number, grant: LaneGrant, report: PermitReport, operation: string): LaneDecision {
    const { route } = this.#options;
    if (report.kind === 'rate-limited' && this.#mayTest) this.#beginLearning();
    if (!this.isLearning) return this.#settleForRoute(now, grant, report, operation);
    if (isOfLimit(report)) return this.#settleRefused(now, grant, report, operation);
    const lane = this.#lanes.get(operation);
    if (grant.lane !== undefined) grant.lane.lane.governor.settle(now, grant.lane.grant, report);
    else if (report.kind === 'accepted')
      lane?.governor.ratePolicy.learner?.adopt([{ at: grant.at, ms: now - grant.at }], 0);
    const isOwn = lane?.odds.isConfirmed === true && report.kind === 'accepted';
    // What the responses of the operation state as remaining belongs to its own limit.
    const decision = route.settle(now, grant, isOwn ? { kind: 'accepted' } : report);
    if (report.kind !== 'accepted') {
      this.recordEnded(grant);
      return decision;
    }
    if (this.#onlyOperation !== undefined && this.#onlyOperation !== operation)
      this.#moveToLane(now, this.#onlyOperation);
    else this.#recordAcceptedWitness(now, grant, lane);
    return decision;
  }

  /** A call was given back, or ended without a response that says anything. */
  recordEnded(grant: LaneGrant): void {
    this.#inquest?.recordEnded(grant);
  }

  /** @param wallAt turns a monotonic instant into epoch milliseconds */
  list(now: number, wallAt: (at: number) => number): readonly LaneState[] {
    return Array.from(this.#lanes.values(), ({ operation, governor, odds, refusedCount }) => ({
      operation,
      learned: governor.ratePolicy.learner?.learned(wallAt),
      usage: governor.usage(now),
      pausedMs: governor.pausedMs(now),
      queued: this.#options.queue.lanesOf(governor).reduce((sum, { size }) => sum + size, 0),
      refused: refusedCount,
      isConfirmed: odds.isConfirmed,
    }));
  }

  snapshot(now: number): readonly LearnedLane[] {
    const learned = [...this.#lanes.values()].flatMap(({ operation, governor, odds }) => {
      const own = odds.isConfirmed ? governor.ratePolicy.learner?.snapshot(now) : undefined;
      return own === undefined ? [] : [{ operation, governor: own }];
    });
    // An inquest may have added two more.
    return learned.slice(0, MAX_LANES);
  }

  /** The next closure decides whether a limit is still that of the operation. */
  restore(now: number, lanes: readonly LearnedLane[], ageMs: number): void {
    if (!this.#isWanted || lanes.length === 0) return;
    this.#beginLearning();
    for (const { operation, governor } of lanes) {
      this.#refused.getOrCreate(operation).restore();
      this.#createLane(now, operation).governor.restore(now, governor, ageMs);
    }
  }

  /** Lanes end where nothing is learned: with a configured rate, and while calls are observed only. */
  reconfigure(now: number): void {
    for (const { governor } of this.#lanes.values()) governor.reconfigure(now, this.#laneSettings);
    if (this.#isWanted) return;
    this.isLearning = false;
    this.#lanes.clear();
    this.#inquest = undefined;
    this.#onlyOperation = undefined;
    this.#refusalCount = this.#routeVerdicts = this.#nextInquestAt = 0;
    this.#changeGates();
  }

  get #isWanted(): boolean {
    const { mode, rate, lanes = false } = this.#options.settings();
    return mode !== 'observe' && rate === 'auto' && lanes !== false;
  }

  /** Calls of other operations may be held up to show whose limit it is. */
  get #mayTest(): boolean {
    return this.#isWanted && this.#options.settings().lanes === true;
  }

  /** The refusals so far have shown without a test that they fall on the operation alone. */
  #isShown(operation: string): boolean {
    return this.#isWanted && (this.#refused.oddsOf(operation)?.bits ?? 0) >= SHOWN_BITS;
  }

  /** The configured limits are the route's. */
  get #laneSettings(): RateSettings {
    return { ...this.#options.settings(), maxRate: undefined, limits: [] };
  }

  /** Waiting requests may have another lane now. */
  #changeGates(): void {
    const { queue } = this.#options;
    for (const ticket of queue.waitingTickets()) queue.changeGate(ticket, this.gateOf(ticket));
  }

  #settleForRoute(now: number, grant: LaneGrant, report: PermitReport, operation: string): LaneDecision {
    const isFirst = report.kind === 'rate-limited' && this.#refused.recordRefused(now, grant.at);
    if (isFirst && !grant.isPauseProbe) this.#refused.recordClosure(operation);
    if (!isOfLimit(report) || !this.#mayHaveLane(now, operation)) return this.#options.route.settle(now, grant, report);
    this.#beginLearning();
    return this.#chargeLane(now, this.#createLane(now, operation), grant, report);
  }

  #beginLearning(): void {
    this.isLearning = true;
    this.#options.times.keepCalls();
  }

  #takeBoth(now: number, hasWaited: boolean, call: PacedCall, lane: Lane): LaneGrant | undefined {
    const { route } = this.#options;
    if (lane.governor.nextAt(now, ANY_CALL) > now) {
      lane.isHolding = true;
      lane.governor.recordHeld(now);
      return undefined;
    }
    const grant = route.tryTake(now, hasWaited && !lane.isHolding, call);
    if (grant === undefined) {
      lane.isHolding = false;
      return undefined;
    }
    const own = lane.governor.tryTake(now, hasWaited, ANY_CALL);
    if (own !== undefined) return { ...grant, lane: { lane, grant: own } };
    route.giveBack(now, grant);
    route.freeSlot();
    return undefined;
  }

  #settleRefused(now: number, grant: LaneGrant, report: RateLimitReport, operation: string): LaneDecision {
    const { route } = this.#options;
    this.#refusalCount++;
    const inquest = this.#inquest;
    const present = this.#lanes.get(operation);
    const isOwn = present !== undefined && (present.odds.isConfirmed || inquest?.lanes.has(present) === true);
    if (inquest !== undefined && !isOwn) return this.#recordRefusedWitness(now, inquest, grant, report, operation);
    const isFirst = this.#refused.recordRefused(now, grant.at) && inquest === undefined;
    // The call that ends a pause is a retry of the operation that began it.
    if (isFirst && !grant.isPauseProbe && present?.odds.isConfirmed !== true) this.#refused.recordClosure(operation);
    const lane = present ?? (this.#mayHaveLane(now, operation) ? this.#createLane(now, operation) : undefined);
    if (lane === undefined) return route.settle(now, grant, report);
    const laneShare = Math.max(EXPLAINING_SHARE, usedShare(lane.governor, now));
    if (lane !== present || !lane.odds.isConfirmed || usedShare(route, now) <= laneShare)
      return this.#chargeLane(now, lane, grant, report);
    if (grant.lane !== undefined) grant.lane.lane.governor.disregard(now, grant.lane.grant);
    return route.settle(now, grant, report);
  }

  /** The refused operation gets a lane. With `throttle.lanes: true` a test has to confirm it. */
  #mayHaveLane(now: number, operation: string): boolean {
    const { route, times } = this.#options;
    if (!this.#mayTest) {
      const isShown = this.#isShown(operation) && this.#hasRoom(now);
      // What the route has learned from these refusals does not explain them.
      if (isShown) route.forgetLearned(now);
      return isShown;
    }
    const own = new Set([operation]);
    // After a long pause no other is known of late, but the route has learned from all.
    if (!times.hasOther(own, -Infinity) && this.#lanes.size === 0) this.#onlyOperation ??= operation;
    return times.hasOther(own, now - RECENT_MS) && this.#mayInquire(now, operation);
  }

  #chargeLane(now: number, lane: Lane, grant: LaneGrant, report: RateLimitReport): LaneDecision {
    lane.lastRefusedAt = now;
    lane.refusedCount++;
    // A call from before the lane has no grant of it, and counts as one that was in flight when a pause began.
    const own = grant.lane?.lane === lane ? grant.lane.grant : lane.governor.grantFor(grant);
    const decision = lane.governor.settle(now, own, report);
    if (decision.kind === 'alone' && !lane.odds.isConfirmed) {
      // The refusals do not depend on the rate of the operation, so that no limit of the operation explains them.
      lane.odds.refute();
      this.#lanes.delete(lane.operation);
      this.#changeGates();
      return this.#options.route.settle(now, grant, report);
    }
    const scoped: LaneDecision = decision.kind === 'limited' ? { ...decision, lane } : decision;
    if (this.#inquest === undefined && !lane.odds.isConfirmed) {
      const { times } = this.#options;
      this.#inquest = new Inquest(lane, grant, report, times.callsPerMs(now));
    } else {
      if (this.#inquest?.lanes.has(lane) === true) this.#inquest.recordOwnRefusal(grant.at);
      this.#options.route.disregard(now, grant);
    }
    return scoped;
  }

  /** A witness was refused: it gets a lane too, until a third operation decides. */
  #recordRefusedWitness(
    now: number,
    inquest: Inquest,
    grant: LaneGrant,
    report: RateLimitReport,
    operation: string,
  ): LaneDecision {
    const lane = this.#lanes.get(operation) ?? this.#createLane(now, operation);
    inquest.recordRefused(grant, report, lane);
    const suspects = new Set(Array.from(inquest.lanes, (each) => each.operation));
    if (!inquest.isRoutes && this.#options.times.hasOther(suspects, now - RECENT_MS))
      return this.#chargeLane(now, lane, grant, report);
    if (grant.lane !== undefined) grant.lane.lane.governor.disregard(now, grant.lane.grant);
    for (const { odds } of inquest.lanes) odds.recordRefusedWitness();
    return this.#chargeRoute(now, inquest);
  }

  /** The limit is the route's: it learns of all refusals. */
  #chargeRoute(now: number, inquest: Inquest): LaneDecision {
    this.#inquest = undefined;
    this.#routeVerdicts = Math.min(MAX_DOUBLINGS, this.#routeVerdicts + 1);
    this.#nextInquestAt = this.#refusalCount + 2 ** this.#routeVerdicts;
    for (const lane of this.#lanes.values())
      if (!lane.odds.isConfirmed && (inquest.lanes.has(lane) || lane.odds.isRefuted))
        this.#lanes.delete(lane.operation);
    let decision: LaneDecision = { kind: 'unlimited' };
    for (const { grant, report } of inquest.refusals) decision = this.#options.route.settle(now, grant, report);
    this.#changeGates();
    return decision;
  }

  #recordAcceptedWitness(now: number, grant: LaneGrant, lane: Lane | undefined): void {
    const inquest = this.#inquest;
    const { times, route } = this.#options;
    // What was sent before the refused call, or about then, says nothing.
    if (inquest === undefined || grant.at <= inquest.refusedAt + times.spreadMs() / 2) return;
    // An accepted call of a refused operation shows only that the time of refusals is over.
    const isOver = lane !== undefined && inquest.lanes.has(lane);
    for (const { odds } of inquest.lanes) odds.recordAcceptedWitness(isOver ? 1 : inquest.chanceOfPermit(grant.at));
    if ([...inquest.lanes].every(({ odds }) => odds.isRefuted)) {
      this.#chargeRoute(now, inquest);
      return;
    }
    this.#inquest = undefined;
    for (const refusal of inquest.refusals) route.disregard(now, refusal.grant);
  }

  #mayInquire(now: number, operation: string): boolean {
    const { route, times } = this.#options;
    const odds = this.#refused.oddsOf(operation);
    // What the route has learned explains them too, but then the others would be refused as often.
    const isOwn = odds !== undefined && odds.bits >= OWN_BITS;
    const isExplained = usedShare(route, now) >= EXPLAINING_SHARE || this.#refusalCount < this.#nextInquestAt;
    if (isExplained && !isOwn) return false;
    if (odds?.isRefuted === true) return false;
    const isLast = !times.hasOther(new Set([operation, ...this.#lanes.keys()]), now - RECENT_MS);
    if (isLast && (odds?.closures ?? 0) <= MAX_CLOSURES_OF_LAST) return false;
    // What the route has learned from these closures does not explain them.
    if (isLast || isExplained) route.forgetLearned(now);
    return this.#hasRoom(now);
  }

  #hasRoom(now: number): boolean {
    for (const lane of this.#lanes.values()) if (now - lane.lastRefusedAt > IDLE_MS) this.#lanes.delete(lane.operation);
    return this.#lanes.size < MAX_LANES;
  }

  /** There are other operations now: what was learned from one is that operation's, until shown otherwise. */
  #moveToLane(now: number, operation: string): void {
    this.#onlyOperation = undefined;
    const { route } = this.#options;
    const learned = route.ratePolicy.learner?.snapshot(now);
    const { governor } = this.#lanes.get(operation) ?? this.#createLane(now, operation);
    governor.restore(now, learned, 0);
    route.forgetLearned(now);
    if (!route.pause.isClosed) return;
    governor.joinPause(now, route.pausedMs(now));
    route.pause.end();
    route.applyRate(now);
  }

  #createLane(now: number, operation: string): Lane {
    const { route, times, random } = this.#options;
    const governor = new Governor({ ...this.#laneSettings, random });
    const lane = new Lane(operation, governor, this.#refused.getOrCreate(operation));
    lane.lastRefusedAt = now;
    lane.governor.ratePolicy.learner?.adopt(times.callsOf(operation), route.inFlightLimit, times.rateOf(operation));
    this.#lanes.set(operation, lane);
    this.#changeGates();
    return lane;
  }
}

/** A 503 that no setting names may be a node that shuts down. */
function isOfLimit(report: PermitReport): report is RateLimitReport {
  return report.kind === 'rate-limited' && (report.signal.status !== 503 || report.isConfigured === true);
}

/** How much of a governor's learned limit is used; 0 while none is known. */
function usedShare(governor: Governor, now: number): number {
  const counted = governor.ratePolicy.learner?.countUsed(now);
  return counted === undefined ? 0 : counted.used / counted.limit;
}
