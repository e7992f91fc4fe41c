/**
 * `throttle.rate: auto`: learns the upstream's limit from accepted and refused calls (pure). How it works, in order:
 *   unlimited      Nothing was refused yet: calls are recorded and not paced.
 *   tracking       A limit that explains all kept refusals is kept to: counter-bank.ts counts, closure-history.ts keeps the refusals,
 *                  limit-choice.ts chooses, limit-in-use.ts says when the next call may go. Each refusal chooses anew.
 *   limit-probing  From time to time single calls exceed the limit, so that a raised limit is found (limit-probe.ts). Refusals that a
 *                  raised limit contradicts are forgotten. After an outage, and where the limit allows far less than before, a rate from
 *                  before is tried.
 *   testing        The limit brings less than was accepted before, and yet calls are refused: the former rate is tried (former-rate.ts).
 *   chance         The former rate was accepted but for a share of the calls: these are repeated alone (refusals-by-chance.ts).
 * An unexpected refusal that leaves the choice as it is comes from jitter or from another client: less of the rate is used for a while.
 */
import type { CallResult, PermitGrant, StatedWait } from '../pacing/gate.ts';
import type { AcceptedCall, RateLearner, RatePolicy } from '../pacing/rate-policy.ts';
import type { LearnedLimit, LimitUsage } from '../throttle.ts';
import { CallLog } from './call-log.ts';
import { ClosureHistory } from './closure-history.ts';
import { COUNTER_KINDS, CounterBank } from './counter-bank.ts';
import { FormerRate } from './former-rate.ts';
import { type ChosenLimit, choosePair, MIN_CLOSURES_IN_FLIGHT } from './limit-choice.ts';
import { InFlightLimit } from './in-flight-limit.ts';
import { LimitInUse, LimitPair } from './limit-in-use.ts';
import { LimitProbe } from './limit-probe.ts';
import {
  closureOf,
  createLimitSnapshot,
  describeLimit,
  listCallAges,
  type LimitSnapshot,
  parseLimitSnapshot,
} from './limit-snapshot.ts';
import { RateMargin } from './rate-margin.ts';
import { RefusalsByChance } from './refusals-by-chance.ts';
import { RoundTripEstimator } from './round-trip-estimator.ts';

const MAX_LOGGED_CALLS = 65_536;
const MAX_WINDOW_MS = 86_400_000;
const MIN_RATE = 1 / 3600;
/** Share of the rate accepted lately that is used while no counter explains the refusals. */
const UNEXPLAINED_SHARE = 0.7;
const MIN_UNEXPLAINED_RATE = 2;
const RECENT_MS = 2_000;
const UNEXPLAINED_LIMIT_PROBE_DELAY_MS = 1_000;
/** What a refusal without a stated wait costs: its backoff and the round trip of its probe. */
const UNSTATED_PAUSE_MS = 200;
/** A limit in flight frees a slot within a round trip: a wait of more round trips than this is evidence against it. */
const LONG_WAIT_ROUND_TRIPS = 5;
/** A restored limit is probed after this time. */
const RESTORED_LIMIT_PROBE_DELAY_MS = 5_000;
/** Refusals that a limit must have explained before an unexpected one is taken for jitter. */
const MIN_TRUSTED_REFUSALS = 4;
/** A restored limit is usable at once, and not trusted. */
const RESTORED_REFUSALS = 1;
/** A choice whose rate differs by less is the same. */
const SAME_RATE_SHARE = 0.1;
/** Share of a window's limit that may be spent at once after a quiet time, until probes have confirmed the window. */
const BURST_SHARE = 0.05;
/** Growth of the burst of a window at each refused probe and at each unexpected refusal. */
const BURST_GROWTH = 1.5;
const BURST_DECREASE = 0.25;
/** The margin falls and rises as if a penalty cost at most so many refusals. */
const MAX_PENALTY_MARGIN_COST = 3;

/** Read again at every use, so that a reload can change `maxInFlight` and `maxRate`. */
export interface LearnedRatePolicyOptions {
  readonly maxInFlight: number;
  /** Permits per second that are never exceeded. Default: none. */
  readonly maxRate?: number | undefined;
  /** Calls that may be in flight at the start. Default: 4. */
  readonly startInFlight?: number | undefined;
  /** How many calls of other replicas are in flight is not known. Default: false */
  readonly isOfFleet?: boolean | undefined;
  /** Calls without a response; the governor adds and removes them. */
  readonly inFlightCalls: CallLog;
}

type LearningPhase = 'unlimited' | 'tracking' | 'limit-probing' | 'testing' | 'chance';

export class LearnedRatePolicy implements RatePolicy, RateLearner {
  readonly learner: RateLearner = this;
  readonly #options: LearnedRatePolicyOptions;
  readonly #pending: CallLog;
  /** Calls that were accepted, are in flight, or ended without a response. */
  readonly #notRefused = new CallLog(MAX_LOGGED_CALLS, MAX_WINDOW_MS);
  readonly #bank: CounterBank;
  readonly #history: ClosureHistory;
  readonly #limitProbe: LimitProbe;
  readonly #roundTrip = new RoundTripEstimator();
  #phase: LearningPhase = 'unlimited';
  #limit: LimitPair | undefined;
  /** Since when the limit is what it is, or no limit explains the refusals; undefined before the first refusal. */
  #limitSince: number | undefined;
  readonly #inFlightLimit: InFlightLimit;
  #explainedRefusals = 0;
  /** Closures after the one that the limit was chosen from, and that left the choice as it was: waits may be computed from it. */
  #agreeingClosures = 0;
  /** Permits per second while no counter explains the refusals. */
  #unexplainedRate = MIN_UNEXPLAINED_RATE;
  readonly #margin = new RateMargin();
  /** Replaced when its phase begins. */
  #chance = new RefusalsByChance(0, 0, Infinity);
  readonly #former = new FormerRate();
  #burstShare = BURST_SHARE;
  /** Calls per second accepted shortly before the newest closure. */
  #rateBeforeClosure = 1;
  /** What the last refusal stated. */
  #waitResolutionMs = 0;
  #statedWaitMs = 0;

  constructor(options: LearnedRatePolicyOptions) {
    this.#options = options;
    const { maxInFlight, startInFlight, isOfFleet = false, inFlightCalls } = options;
    this.#inFlightLimit = new InFlightLimit(maxInFlight, startInFlight);
    this.#pending = inFlightCalls;
    this.#bank = new CounterBank(
      COUNTER_KINDS.filter((kind) => kind !== 'concurrency' || !isOfFleet),
      this.#notRefused,
    );
    this.#history = new ClosureHistory(this.#bank);
    this.#limitProbe = new LimitProbe(isOfFleet);
  }

  get isUnlimited(): boolean {
    return this.#phase === 'unlimited';
  }

  get rate(): number {
    const { maxRate = Infinity } = this.#options;
    if (this.#phase === 'unlimited') return maxRate;
    if (this.#phase === 'testing') return Math.min(maxRate, Math.max(this.#limitRate, this.#former.rate));
    if (this.#phase === 'chance') return Math.min(maxRate, Math.max(MIN_RATE, this.#chance.rate));
    return Math.min(maxRate, this.#phase === 'limit-probing' ? this.#limitProbe.rate : this.#limitRate);
  }

  /** Permits per second without what a probe in progress adds. */
  get confirmedRate(): number {
    return this.#phase !== 'tracking' && this.#limit ? Math.min(this.rate, this.#limitRate) : this.rate;
  }

  get burst(): number {
    return this.#phase === 'tracking' ? (this.#limit?.burst(this.#burstShare) ?? 1) : 1;
  }

  /** Refusals in a row that agree with the limit; 0 without one. */
  get explainedRefusals(): number {
    return this.#limit === undefined ? 0 : this.#explainedRefusals;
  }

  get inFlightLimit(): number {
    const choice = this.#limit?.inFlight;
    if (choice === undefined) return this.#inFlightLimit.value;
    const isLimitProbed = this.#phase === 'limit-probing' && choice === this.#limit?.slower.choice;
    const extra = isLimitProbed ? 1 + Math.floor(this.#limitProbe.acceptedCalls / 20) : 0;
    return Math.min(this.#inFlightLimit.value, Math.max(1, choice.capacity + extra));
  }

  get limitsConcurrency(): boolean {
    return this.#limit?.inFlight !== undefined;
  }

  get isConfident(): boolean {
    return this.#phase === 'tracking' && this.#hasConfidence;
  }

  nextAt(now: number, isPaused = false): number {
    const penaltyEndsAt = isPaused ? this.#history.penaltyEndsAt : -Infinity;
    if (this.#limit === undefined || penaltyEndsAt > now) return penaltyEndsAt;
    // The limit is not kept to while its results are compared with those of a rate.
    if (this.#phase === 'testing' || this.#phase === 'chance') return penaltyEndsAt;
    if (this.#phase === 'limit-probing' && !isPaused)
      // A probe goes on top of the known rate: while its response is awaited, calls within the limit go on.
      return Math.max(
        Math.min(this.#limitProbe.openAt(now), this.#limit.slower.openAt()),
        this.#limit.fasterInProbe?.openAt() ?? -Infinity,
      );
    const slowerAt = Math.min(this.#limit.slower.openAt(), this.#limitProbe.dueAt);
    return Math.max(slowerAt, this.#limit.faster?.openAt() ?? -Infinity);
  }

  take(now: number, waitedFor: boolean): boolean {
    const isLimitProbe = this.#phase === 'limit-probing' && this.#limit?.slower.wouldRefuse(now) === true;
    this.#limit?.recordGrant(now);
    this.#notRefused.add(now);
    if (this.#phase === 'unlimited') return false;
    if (isLimitProbe) this.#limitProbe.recordLimitProbeSent(now);
    this.#limitProbe.countCall(now, this.#isTrusted);
    if (this.#phase === 'tracking') this.#beginDue(now, waitedFor);
    return isLimitProbe;
  }

  settle(now: number, grant: PermitGrant, result: CallResult): boolean {
    const { kind, isCurrent, wait, isUnavailable = false, isTimedOut = false } = result;
    if (isTimedOut) this.#inFlightLimit.recordTimeOut(now, grant, this.#roundTrip.meanMs);
    if (kind === 'refused' && isCurrent && !isUnavailable) return this.#recordRefused(now, grant, wait);
    if (kind === 'accepted') this.#recordAccepted(now, grant, isCurrent);
    else if (kind === 'refused' && !isCurrent) {
      // The call was already in flight at the last refusal.
      this.giveBack(now, grant);
      this.#history.recordLateRefusal(grant, this.#roundTrip.jitterMs);
    } else if (grant.isLimitProbe) this.#limitProbe.recordLimitProbeEnded();
    return false;
  }

  /** @param fresh granted after the last refusal */
  #recordAccepted(now: number, grant: PermitGrant, fresh: boolean): void {
    // Refused calls take another time at the upstream, which is no jitter.
    this.#roundTrip.addSample(now - (grant.startedAt ?? grant.at));
    if (grant.isLimitProbe) this.#limitProbe.recordLimitProbeEnded();
    const { maxInFlight } = this.#options;
    if (this.#inFlightLimit.hasTimeOuts) this.#inFlightLimit.recordResponse(maxInFlight);
    else if (this.#inFlightLimit.value < maxInFlight) this.#inFlightLimit.value++;
    if (this.#phase === 'unlimited') {
      this.#history.lastAccepted = grant;
      return;
    }
    this.#former.recordAccepted(now, grant.rate);
    if (this.#phase === 'chance') {
      this.#history.lastAccepted = grant;
      this.#recordByChance(now, grant, true);
      return;
    }
    const ended = this.#history.recordAccepted(grant, this.#roundTrip.jitterMs);
    // Else there is nothing to return to.
    const hasFallen = this.#former.lastingRate > this.#limitRate;
    if (ended === 'outage' && hasFallen) this.#probeLimitAt(now, this.#rateBeforeClosure);
    else if (ended === 'changed') this.#chooseLimit(now);
    if (this.#phase === 'testing') {
      if (fresh) this.#evaluateTest(now, true);
    } else if (this.#phase === 'tracking') {
      if (this.#margin.share < 1) this.#margin.recover(now, this.#isTrusted, this.#marginCost);
    } else if (fresh) {
      // A rate that the application does not use proves nothing.
      this.#limitProbe.recordAccepted(now, grant.isLimitProbe, grant.isWaitedFor, this.#limit === undefined);
      this.#evaluateLimitProbe(now, grant);
    }
  }

  /**
   * The first refusal since the last cut, or that of a probe.
   * @returns true when it concerns this call alone
   */
  #recordRefused(now: number, grant: PermitGrant, statedWait: StatedWait | undefined): boolean {
    this.giveBack(now, grant);
    if (this.#phase === 'testing') {
      const isInVain = this.#evaluateTest(now, false);
      return !grant.isPauseProbe && !isInVain;
    }
    if (this.#phase === 'chance') {
      this.#recordByChance(now, grant, false);
      const isClosed = this.#chance.isClosed && (statedWait?.statedWaitMs ?? 0) > 0;
      return !grant.isPauseProbe && !isClosed;
    }
    this.#learnFrom(now, grant, statedWait);
    return false;
  }

  #learnFrom(now: number, grant: PermitGrant, statedWait: StatedWait | undefined): void {
    if (this.#phase === 'unlimited') this.#former.begin(now, this.#notRefused);
    this.#former.recordRefused(now, grant.rate, !grant.isPauseProbe && this.#phase === 'tracking');
    this.#waitResolutionMs = statedWait?.waitResolutionMs ?? 0;
    this.#statedWaitMs = statedWait?.statedWaitMs ?? 0;
    if (this.#phase === 'limit-probing') this.#limitProbe.end();
    const isExpected = this.#limit !== undefined && (this.#phase === 'limit-probing' || grant.isPauseProbe);
    this.#history.recordRefused(grant, this.#roundTrip.jitterMs, this.#statedWaitMs);
    if (!grant.isPauseProbe) this.#rateBeforeClosure = Math.min(grant.rate, this.#acceptedPerSecond(now) + 1);
    const hasChanged = this.#chooseLimit(now);
    if (hasChanged) this.#agreeingClosures = 0;
    else if (!grant.isPauseProbe) this.#agreeingClosures++;
    this.#limitProbe.scheduleAfterRefusal(now, this.#refusalCost);
    if (this.#limit === undefined) {
      this.#unexplainedRate = Math.max(MIN_UNEXPLAINED_RATE, UNEXPLAINED_SHARE * this.#acceptedPerSecond(now));
      this.#limitProbe.scheduleFirst(now, UNEXPLAINED_LIMIT_PROBE_DELAY_MS);
    }
    if (!isExpected || !grant.isPauseProbe) this.#adjustBurst(isExpected);
    if (isExpected) this.#explainedRefusals++;
    else if (!hasChanged && this.#limit !== undefined) this.#reduceMargin(now);
    this.#limitSince ??= now;
    this.#phase = 'tracking';
  }

  giveBack(_now: number, grant: PermitGrant): void {
    this.#notRefused.remove(grant.at);
    if (grant.isLimitProbe) this.#limitProbe.recordLimitProbeEnded();
  }

  /** Calls are missing: a probe would find every limit raised. The one in progress ends, and the interval to the next begins anew. */
  postponeLimitProbe(now: number): void {
    if (this.#limit === undefined) return;
    this.#limitProbe.scheduleAfterRefusal(now, this.#refusalCost);
    this.#phase = 'tracking';
  }

  adopt(calls: readonly AcceptedCall[], inFlightLimit: number, formerRate = 0): void {
    this.#former.adopt(formerRate);
    for (const { at } of calls) this.#notRefused.add(at);
    for (const { ms } of calls) this.#roundTrip.addSample(ms);
    this.#inFlightLimit.value = Math.max(this.#inFlightLimit.value, inFlightLimit);
  }

  forgetRefusals(): void {
    this.#phase = 'unlimited';
    this.#history.drop(this.#history.closures);
    this.#forgetChoice();
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    if (this.#limitSince === undefined) return undefined;
    const since = wallAt(this.#limitSince);
    const learned = describeLimit(this.#limit?.choice, this.confirmedRate, this.#hasConfidence, since);
    return this.#phase === 'chance' ? { ...learned, refusedShare: this.#chance.share } : learned;
  }

  countUsed(now: number): Omit<LimitUsage, 'opensInMs'> | undefined {
    return this.#limit?.slower.countUsed(now);
  }

  snapshot(now: number): LimitSnapshot | undefined {
    if (this.#limit === undefined) return undefined;
    const countLast = (ms: number): number => this.#notRefused.count(now - ms, Infinity);
    const describe = (choice: ChosenLimit): LimitSnapshot =>
      createLimitSnapshot(choice, Math.max(0.5, this.#margin.share), countLast);
    const { main, additional } = this.#limit.chosen;
    return { ...describe(main), ...(additional && { second: describe(additional) }) };
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    const parsed = parseLimitSnapshot(snapshot);
    if (parsed === undefined) return;
    for (const callAgeMs of listCallAges(parsed)) this.#notRefused.add(now - ageMs - callAgeMs);
    this.#restoreLimit(now, parsed, ageMs);
    if (this.#limit === undefined) return;
    this.#margin.set(parsed.margin);
    this.#explainedRefusals = RESTORED_REFUSALS;
    this.#limitSince ??= now;
    this.#phase = 'tracking';
    this.#inFlightLimit.value = this.#options.maxInFlight;
    this.#limitProbe.scheduleFirst(now, RESTORED_LIMIT_PROBE_DELAY_MS);
  }

  #restoreLimit(now: number, snapshot: LimitSnapshot, ageMs: number): void {
    // As often as a limit in flight needs closures to be chosen.
    for (let count = 0; count < MIN_CLOSURES_IN_FLIGHT; count++)
      this.#history.restore(closureOf(this.#bank.counters, snapshot), now - ageMs);
    this.#chooseLimit(now, this.#limit?.choice);
    if (snapshot.second !== undefined) this.#restoreLimit(now, snapshot.second, ageMs);
  }

  /** Begins the test or the probe that is due. */
  #beginDue(now: number, waitedFor: boolean): void {
    if (this.#isTestDue(now, waitedFor)) {
      this.#former.startTest(now, this.#limitRate);
      this.#phase = 'testing';
    } else if (!waitedFor) {
      return;
    } else if (this.#limitProbe.takeFallenDue(now, this.#limitRate, this.#former.lastingRate)) {
      this.#probeLimitAt(now, this.#former.lastingRate);
    } else if (now >= this.#limitProbe.dueAt) {
      const explainableCalls = this.#limit?.slower.startLimitProbe(now) ?? 0;
      this.#limitProbe.start(this.#limitRate, this.#limit?.rate ?? Infinity, explainableCalls);
      this.#phase = 'limit-probing';
    }
  }

  #isTestDue(now: number, waitedFor: boolean): boolean {
    // While half of all calls are refused, most of them are sent in pauses, when no call waits for the rate.
    if (!this.#hasConfidence && this.#former.isFirstDue(now)) return true;
    return waitedFor && !this.#history.isClosed && this.#former.isDue(now, this.#limitRate);
  }

  /** @returns true when the test ends in vain */
  #evaluateTest(now: number, isAccepted: boolean): boolean {
    const found = this.#former.recordTestCall(now, isAccepted, this.#limitRate);
    if (found === undefined) return false;
    if (found === 'in vain') {
      this.#phase = 'tracking';
      return true;
    }
    this.#chance = new RefusalsByChance(now, found, this.#former.rate / (1 - found));
    this.#forgetLimit(now);
    this.#phase = 'chance';
    return false;
  }

  #recordByChance(now: number, grant: PermitGrant, isAccepted: boolean): void {
    const end = this.#chance.record(now, isAccepted, grant.isWaitedFor);
    if (end === undefined) return;
    if (end === 'rate') this.#former.recordRefuted(now);
    this.#probeLimitAt(now, Math.max(MIN_UNEXPLAINED_RATE, this.#chance.acceptedRate));
  }

  #forgetLimit(now: number): void {
    this.#history.forget(now);
    this.#forgetChoice(now);
  }

  #forgetChoice(since?: number): void {
    this.#limit = undefined;
    this.#limitSince = since;
    this.#explainedRefusals = this.#agreeingClosures = 0;
    this.#margin.set(1);
  }

  get #limitRate(): number {
    return Math.max(MIN_RATE, (this.#limit?.rate ?? this.#unexplainedRate) * this.#margin.share);
  }

  get #hasConfidence(): boolean {
    return this.#limit !== undefined && this.#agreeingClosures > 0;
  }

  get #isTrusted(): boolean {
    return this.#limit !== undefined && this.#explainedRefusals >= MIN_TRUSTED_REFUSALS;
  }

  /**
   * Time that a refusal costs, as a multiple of one without a stated wait. A wait in whole seconds is obeyed to its end, up to a second
   * too long, and a penalty lasts for its time. What risks a refusal is done as many times more rarely.
   */
  get #refusalCost(): number {
    const lostMs = Math.max(this.#history.penaltyMs, this.#waitResolutionMs);
    const limit = this.limitsConcurrency ? undefined : this.#limit;
    // Idle time costs nothing in which permits are saved up.
    const madeUpMs = limit === undefined ? 0 : (limit.burst(BURST_SHARE) * 1000) / limit.rate;
    return 1 + Math.max(0, lostMs - madeUpMs) / UNSTATED_PAUSE_MS;
  }

  get #marginCost(): number {
    return this.#history.penaltyMs > 0 ? Math.min(MAX_PENALTY_MARGIN_COST, this.#refusalCost) : this.#refusalCost;
  }

  #acceptedPerSecond(now: number): number {
    return (this.#notRefused.count(now - RECENT_MS, Infinity) * 1000) / RECENT_MS;
  }

  /** @returns true when another limit was chosen than before */
  #chooseLimit(now: number, trusted = this.#isTrusted ? this.#limit?.chosen.main : undefined): boolean {
    const before = this.#limit?.choice;
    const hadAdditional = this.#limit?.faster !== undefined;
    const { meanMs } = this.#roundTrip;
    const roundTripMs = this.#statedWaitMs > LONG_WAIT_ROUND_TRIPS * meanMs ? Infinity : meanMs;
    const pair = choosePair(
      this.#bank.counters,
      this.#history.closures,
      this.#limit?.chosen.trusted ?? trusted,
      roundTripMs,
    );
    // Right after a change nothing is known: what was known before is used, with its margin.
    if (pair === undefined) return false;
    this.#limit = new LimitPair(pair, (choice) => new LimitInUse(choice, this.#notRefused, this.#pending));
    const { choice } = this.#limit;
    // Refusals by the additional limit lowered the margin, which a limit in flight does not use.
    if (before?.counter.kind === 'concurrency' && !hadAdditional && pair.additional !== undefined) this.#margin.set(1);
    // Near the true rate several counters explain the same refusals.
    if (before !== undefined && Math.abs(choice.rate / before.rate - 1) < SAME_RATE_SHARE) return false;
    this.#limitSince = now;
    this.#explainedRefusals = Math.floor(this.#explainedRefusals / 2);
    this.#margin.set(1);
    return true;
  }

  /** When calls beyond the limit were accepted, either another counter explains that as well, or the limit was raised. */
  #evaluateLimitProbe(now: number, grant: PermitGrant): void {
    const former = this.#limit;
    if (former?.slower.isExceeded(now, grant.inFlight) !== true) return;
    if (former.choice === former.chosen.additional) {
      // The refusals that it explained had another cause.
      this.#history.drop(former.chosen.unexplained);
      this.#chooseLimit(now);
      this.postponeLimitProbe(now);
      return;
    }
    this.#history.recordExcess(grant, this.#roundTrip.jitterMs);
    this.#chooseLimit(now);
    const { index, isContradicted } = (this.#limit ?? former).choice;
    if (index !== former.choice.index && !isContradicted) {
      this.#phase = 'tracking';
      return;
    }
    this.#forgetLimit(now);
    this.#limitProbe.recordLimitChange(now);
    this.#limitProbe.continueFrom(this.#limitProbe.rate);
  }

  /** A rate from before is used, until a call beyond the limit is refused. */
  #probeLimitAt(now: number, rate: number): void {
    this.#limitProbe.start(rate, Infinity, this.#limit?.slower.startLimitProbe(now) ?? 0);
    this.#phase = 'limit-probing';
  }

  #reduceMargin(now: number): void {
    const changedAt = this.#margin.reduce(now, this.#isTrusted, this.#marginCost);
    if (changedAt !== undefined) this.#history.forget(changedAt);
  }

  /** A probe that is refused where it should be confirms the window, and with it larger bursts. */
  #adjustBurst(isExpected: boolean): void {
    const share = this.#burstShare * (isExpected ? BURST_GROWTH : BURST_DECREASE);
    this.#burstShare = Math.min(1, Math.max(BURST_SHARE, share));
  }
}
