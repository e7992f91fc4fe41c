/**
 * A throttle's membership in its fleet: leases permits when the queue needs them, reports calls, and reports refusals at once. One
 * exchange at a time, as few as possible. After two missing replies the store counts as away. QuotaLease applies the replies,
 * FleetLeader does the leader's work.
 */
import { OneShotTimer } from '../../throttle/pacing/one-shot-timer.ts';
import type {
  LimitsRequest,
  PublishedLimit,
  QuotaReply,
  QuotaRequest,
  QuotaStore,
  QuotaUpdate,
} from './quota-store.ts';
import { ClockOffset } from './clock-offset.ts';
import { LeaderElection } from './leader-election.ts';
import { FleetRatePolicy } from './fleet-rate-policy.ts';
import { encodeCalls, ReportBuffer } from './call-report.ts';
import { QuotaLease } from './quota-lease.ts';
import type { Clock } from '../../platform/clock.ts';
import type { FleetHost, FleetMembership } from '../../throttle/fleet-membership.ts';
import type { PermitSource } from '../../throttle/pacing/permit-bucket.ts';
import type { RatePolicy } from '../../throttle/pacing/rate-policy.ts';
import type { FleetQuotaState, RateSettings } from '../../throttle/throttle.ts';

const MAX_WANTED_PERMITS = 16;
/** Permits left at which more are requested, so that the next are here when these are used. */
const LOW_PERMITS = 1;
/** A wait stated to another replica that is longer than this pauses this one as well. */
const LONG_PAUSE_MS = 1_000;
/** After a refusal without a known limit reports are frequent for this time, so that the leader learns the first one. */
const LEARNING_MS = 10_000;
/** A replica gives back its permits of the declared limits after this time without calls. */
const ACTIVE_MS = 3_000;

/** Longest times between two exchanges, by situation. */
const LEADER_INTERVAL_MS = 300;
/** Without other replicas there are no reports, and a lapsed lease does no harm. */
const SINGLE_INTERVAL_MS = 700;
const FOLLOWER_INTERVAL_MS = 4_500;
/** While the fleet learns its first limit; longer in a large fleet, so that all together exchange about 16 times a second. */
const LEARNING_INTERVAL_MS = 250;
const MAX_EXCHANGES_PER_INTERVAL = 4;
const PAUSED_INTERVAL_MS = 2_000;
const DISCONNECTED_INTERVAL_MS = 250;
const MISSED_REPLY_INTERVAL_MS = 20;
/** The next replica waits for the one before. */
const DEPUTY_DELAY_MS = 20;

const NO_HOST = { isPaused: false, isIdle: true };

export interface FleetMemberOptions {
  readonly store: QuotaStore;
  /** Distinguishes the replicas. */
  readonly id: string;
  readonly settings: RateSettings;
  readonly clock: Clock;
}

export class FleetMember implements FleetMembership {
  readonly #lease: QuotaLease;
  readonly #options: FleetMemberOptions;
  readonly #clockOffset = new ClockOffset();
  readonly #reports = new ReportBuffer(this.#clockOffset);
  readonly #election: LeaderElection;
  readonly #timer: OneShotTimer;
  #settings: RateSettings;
  #host: FleetHost | undefined;
  #ownPolicy: RatePolicy | undefined;
  #lastReply: QuotaReply | undefined;
  #waiting = 0;
  #isExchanging = false;
  #isUrgent = true;
  #missedReplies = 0;
  #lastExchangeAt = -Infinity;
  #permitsWantedAt = -Infinity;
  #learnsUntil = -Infinity;
  /** Ends of pauses that this replica has applied, an instant of the store. */
  #joinedPausesUntil = -Infinity;
  // The report on the declared limits: the number of the present one, whether the last was not confirmed, and what more permits wait for.
  #reportSequence = 1;
  #reportsKnown = false;
  #needsGrants = false;
  #grantsWantedAt = -Infinity;
  #grantsNeededUntil = -Infinity;
  #hasConnected = false;
  /** This replica has worked alone since its last reply. */
  #isReturning = false;
  #hasLeft = false;

  constructor(options: FleetMemberOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#lease = new QuotaLease(this.#clockOffset, () => this.#settings.maxRate ?? Infinity);
    this.#election = new LeaderElection(this.#clockOffset, options.settings);
    const { clock } = options;
    this.#timer = new OneShotTimer(
      (at, run) => clock.after(at - clock.now(), run),
      () => this.#scheduleExchange(),
    );
  }

  wrapPermits(own: PermitSource): PermitSource {
    return this.#lease.wrap(own, () => this.#host?.isPaused === true);
  }

  wrapRatePolicy(own: RatePolicy): RatePolicy {
    this.#ownPolicy = own;
    return new FleetRatePolicy(this.#lease, this.#election, this.#reports, own, () => this.#settings);
  }

  state(now: number): FleetQuotaState {
    return this.#lease.describe(now);
  }

  start(host: FleetHost): void {
    this.#host = host;
    this.#options.store.listen({
      onConnected: () => this.#onConnected(),
      onDisconnected: () => this.#onDisconnected(),
      onUpdate: (update) => this.#applyUpdate(update),
    });
  }

  reconfigure(settings: RateSettings): void {
    this.#settings = settings;
    this.#election.reconfigure(settings);
    this.#isUrgent = true;
  }

  setWaiting(count: number): void {
    // No permit was needed before either. During a pause it matters whether requests wait.
    const isSame = count === 0 && this.#waiting === 0 && !this.#lease.isFleetPaused && !this.#isUrgent;
    this.#waiting = count;
    if (!isSame) this.#scheduleExchange();
  }

  requestPermits(): void {
    if (this.#needsGrants || this.#hasLeft || !this.#hasConnected) return;
    const now = this.#options.clock.now();
    this.#needsGrants = true;
    this.#grantsNeededUntil = now + ACTIVE_MS;
    // Not in the midst of a grant, and once for several of them.
    if (!this.#isExchanging) this.#timer.setNoLaterThan(Math.max(now, this.#grantsWantedAt));
  }

  reportRefusal(statedWaitMs: number | undefined): void {
    if (this.#lease.state !== 'joined' || !this.#clockOffset.isKnown) return;
    const now = this.#options.clock.now();
    this.#reports.recordRefusal(now, statedWaitMs);
    if (this.#lease.isLearningAlone) this.#learnsUntil = now + LEARNING_MS;
    this.#isUrgent = true;
    this.#scheduleExchange();
  }

  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#timer.set(Infinity);
    void this.#options.store.exchange({
      ...this.#createRequest(this.#options.clock.now()),
      want: 0,
      activity: 'leaving',
    });
  }

  #scheduleExchange(): void {
    const now = this.#options.clock.now();
    if (this.#hasLeft || this.#isExchanging || !this.#hasConnected) return;
    const dueAt = this.#nextExchangeAt(now);
    if (dueAt > now) this.#timer.set(dueAt);
    else void this.#exchange(now);
  }

  /**
   * As seldom as possible; a past instant means now. The leader reads reports often. The others exchange when they need permits, when the
   * leader may be lost, and otherwise only to be counted as present. Without calls all exchange seldom.
   */
  #nextExchangeAt(now: number): number {
    const lease = this.#lease;
    const { leader, reportsCompleteAt } = this.#election;
    if (this.#isUrgent) return -Infinity;
    const regularAt = Math.min(this.#lastExchangeAt + this.#exchangeIntervalMs(now), this.#leaderCheckAt(now));
    if (!lease.isFleetPaused) return Math.min(regularAt, this.#nextPermitsAt(now));
    if (leader === undefined) return regularAt;
    if (leader.canEndPause(now, lease, this.#host ?? NO_HOST)) return -Infinity;
    return reportsCompleteAt > this.#lastExchangeAt ? reportsCompleteAt : regularAt;
  }

  #exchangeIntervalMs(now: number): number {
    const { state, isFleetPaused, replicaCount } = this.#lease;
    const isActive = this.#isActive(now);
    if (this.#missedReplies === 1) return MISSED_REPLY_INTERVAL_MS;
    if (this.#missedReplies > 1 || state !== 'joined') return DISCONNECTED_INTERVAL_MS;
    if (this.#election.leader !== undefined && (isActive || isFleetPaused))
      return replicaCount === 1 ? SINGLE_INTERVAL_MS : LEADER_INTERVAL_MS;
    if (isFleetPaused) return PAUSED_INTERVAL_MS;
    if (now >= this.#learnsUntil || !isActive) return FOLLOWER_INTERVAL_MS;
    return LEARNING_INTERVAL_MS * Math.max(1, replicaCount / MAX_EXCHANGES_PER_INTERVAL);
  }

  /** When to look after a leader whose lease ends, each replica after the one before: the first one, and during a pause, when no permits are leased, all. */
  #leaderCheckAt(now: number): number {
    const { state, isFleetPaused, isLearningAlone, leaderUntil, rank } = this.#lease;
    if (this.#missedReplies > 0 || state !== 'joined' || this.#election.leader !== undefined) return Infinity;
    if (!this.#isActive(now) || (!isFleetPaused && (rank > 0 || isLearningAlone))) return Infinity;
    return leaderUntil + (rank + 1) * DEPUTY_DELAY_MS;
  }

  #nextPermitsAt(now: number): number {
    const left = this.#lease.permitsLeft(now);
    const isShort = this.#lease.isLimited && this.#waiting > left && left <= LOW_PERMITS;
    const needsGrants = this.#needsGrants && this.#missedReplies === 0;
    return Math.min(isShort ? this.#permitsWantedAt : Infinity, needsGrants ? this.#grantsWantedAt : Infinity);
  }

  async #exchange(now: number): Promise<void> {
    const { store, clock } = this.#options;
    this.#isExchanging = true;
    this.#isUrgent = false;
    this.#needsGrants = false;
    this.#lastExchangeAt = now;
    this.#timer.set(Infinity);
    const request = this.#createRequest(now);
    const reply = await store.exchange(request);
    this.#isExchanging = false;
    if (this.#hasLeft) return;
    if (reply === undefined) this.#recordMissedReply(request);
    else this.#applyReply(clock.now(), now, reply, request.declared !== undefined);
    this.#host?.pump();
    this.#scheduleExchange();
  }

  #createRequest(now: number): QuotaRequest {
    const { rate, burst } = this.#settings;
    const lease = this.#lease;
    return {
      id: this.#options.id,
      want: this.#permitsWanted(now),
      activity: this.#isActive(now) && !this.#election.isYielding(now) ? 'active' : 'idle',
      fixed: rate === 'auto' ? undefined : { rate, burst },
      knownReplicas: lease.replicaCount,
      calls: this.#takeCallReport(),
      refusal: this.#reports.takeRefusal(),
      published: this.#nextPublication(now),
      version: this.#lastReply?.version ?? 0,
      maxPauseMs: this.#settings.maxPauseMs,
      isReturning: this.#isReturning,
      reportsReadUpTo: this.#election.reportsReadUpTo,
      declared: this.#reportLimits(now),
    };
  }

  /** Undefined before the first reply: limits count by the store's clock. */
  #reportLimits(now: number): LimitsRequest | undefined {
    const { declaredLimits, isHighWaiting = false } = this.#host ?? {};
    if (declaredLimits === undefined || !this.#clockOffset.isKnown) return undefined;
    declaredLimits.countBy((at) => this.#clockOffset.toStoreTime(at));
    const isActive = !this.#hasLeft && (now < this.#grantsNeededUntil || this.#isActive(now));
    const limits = declaredLimits.report(now, isActive, isHighWaiting);
    return limits.length === 0
      ? undefined
      : { sequence: this.#reportSequence, limits, reportsKnown: this.#reportsKnown || this.#hasLeft };
  }

  #applyGrants(now: number, { grants, grantsRetryInMs, replicaCount }: QuotaReply): void {
    this.#grantsWantedAt = now + grantsRetryInMs;
    this.#reportsKnown = grants === undefined;
    if (grants === undefined) return;
    this.#reportSequence++;
    this.#host?.declaredLimits?.recordGrants(now, grants, replicaCount);
  }

  #isActive(now: number): boolean {
    return this.#reports.isActive(now) || this.#waiting > 0;
  }

  #permitsWanted(now: number): number {
    const lease = this.#lease;
    const left = lease.permitsLeft(now);
    if (!lease.isLimited || lease.isFleetPaused || now < this.#permitsWantedAt || left > LOW_PERMITS) return 0;
    return lease.repayExtra(Math.max(0, Math.min(MAX_WANTED_PERMITS, this.#waiting - left)));
  }

  /** The calls since the last report. The leader reads its own ones with those of the others, so that another leader can. */
  #takeCallReport(): string {
    const calls = this.#reports.takeCalls();
    if (this.#settings.rate !== 'auto') return '';
    return encodeCalls(calls, (at) => this.#clockOffset.toStoreTime(at));
  }

  #nextPublication(now: number): PublishedLimit | undefined {
    const { rate, burst = 1, isTentative = false } = this.#lastReply ?? {};
    const limitInForce = rate === undefined ? undefined : { rate, burst, isTentative };
    return this.#election.leader?.nextPublication(now, this.#lease, this.#host ?? NO_HOST, limitInForce);
  }

  #applyReply(now: number, requestedAt: number, reply: QuotaReply, hasReportedLimits: boolean): void {
    this.#missedReplies = 0;
    // This replica is back with the next exchange, which is due at once.
    if (this.#isReturning) this.#isUrgent = true;
    this.#isReturning = false;
    // The clock is known now, by which declared limits count.
    if (!this.#clockOffset.isKnown && this.#host?.declaredLimits !== undefined) this.#isUrgent = true;
    this.#clockOffset.addSample(requestedAt, now, reply.storeNow);
    this.#lastReply = reply;
    this.#permitsWantedAt = now + reply.retryInMs;
    if (hasReportedLimits) this.#applyGrants(now, reply);
    const bounded = { ...reply, ...this.#boundUpdate(now, reply) };
    if (this.#lease.applyReply(now, bounded)) this.#startPause(now);
    this.#joinStatedPause(now, bounded);
    const extraRate = this.#election.applyReply(now, reply, () => this.#ownPolicy?.learner?.snapshot(now));
    this.#lease.setExtraRate(now, extraRate);
    if (this.#nextPublication(now) !== undefined) this.#isUrgent = true;
  }

  /** Redis can neither raise what is configured nor pause for longer. */
  #boundUpdate(now: number, update: QuotaUpdate): Pick<QuotaUpdate, 'rate' | 'burst' | 'pausedUntil'> {
    const { rate, burst, maxRate = Infinity, maxPauseMs } = this.#settings;
    const pausedUntil = Math.min(update.pausedUntil, this.#clockOffset.toStoreTime(now + maxPauseMs));
    if (update.rate === undefined) return { rate: undefined, burst: update.burst, pausedUntil };
    if (rate !== 'auto') return { rate, burst, pausedUntil };
    return { rate: Math.min(update.rate, maxRate), burst: update.burst, pausedUntil };
  }

  #applyUpdate(received: QuotaUpdate): void {
    const now = this.#options.clock.now();
    if (this.#hasLeft || this.#missedReplies > 1) return;
    const update = { ...received, ...this.#boundUpdate(now, received) };
    if (this.#lease.state !== 'joined') this.#isUrgent = true;
    else if (this.#lease.applyUpdate(now, update)) this.#startPause(now);
    this.#joinStatedPause(now, update);
    if (this.#lease.isLearningAlone) {
      this.#learnsUntil = now + LEARNING_MS;
      // The leader needs the calls that were accepted before the refusal of another replica.
      if (this.#reports.size > 0) this.#isUrgent = true;
    }
    this.#permitsWantedAt = -Infinity;
    this.#host?.pump();
    this.#scheduleExchange();
  }

  #startPause(now: number): void {
    const lease = this.#lease;
    this.#election.onPaused(now);
    // The leader needs the calls accepted before the pause.
    if (!lease.isLeader && this.#reports.size > 0) this.#isUrgent = true;
    const leftMs = lease.pausedUntil - now;
    const mustPause = lease.isLeader || leftMs > LONG_PAUSE_MS;
    if (mustPause && this.#host?.isPaused === false) this.#host.pause(leftMs > 0 ? leftMs : undefined);
  }

  /** Without a limit each replica pauses for its own refusals; a long wait that was stated to one holds for all. */
  #joinStatedPause(now: number, { pausedUntil }: QuotaUpdate): void {
    if (!(pausedUntil > this.#joinedPausesUntil)) return;
    this.#joinedPausesUntil = pausedUntil;
    const leftMs = this.#lease.pausedUntil - now;
    const isAlone = this.#lease.isLearningAlone && !this.#lease.isFleetPaused;
    if (isAlone && leftMs > LONG_PAUSE_MS && this.#host?.isPaused === false) this.#host.pause(leftMs);
  }

  #recordMissedReply({ refusal }: QuotaRequest): void {
    this.#missedReplies++;
    this.#reports.restoreRefusal(refusal);
    if (this.#missedReplies > 1) this.#goApart();
  }

  #onDisconnected(): void {
    this.#missedReplies = 2;
    this.#goApart();
    this.#host?.pump();
    this.#scheduleExchange();
  }

  #goApart(): void {
    const now = this.#options.clock.now();
    this.#reportsKnown = true;
    this.#host?.declaredLimits?.goApart(now, { parts: this.#lease.replicaCount, index: this.#lease.rank });
    this.#isReturning = this.#lastReply !== undefined;
    this.#election.onDisconnected();
    this.#reports.onDisconnected();
    this.#lease.onDisconnected(now);
  }

  #onConnected(): void {
    this.#missedReplies = 0;
    const now = this.#options.clock.now();
    this.#election.onConnected(now, this.#hasConnected);
    this.#hasConnected = true;
    this.#reports.onConnected(now);
    this.#isUrgent = true;
    this.#scheduleExchange();
  }
}
