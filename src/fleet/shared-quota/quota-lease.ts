/**
 * One replica's part of the shared quota (pure).
 *   unknown  never joined, or no limit was published: the replica works alone, as if there were no fleet
 *   joined   permits are leased from the store, and none is valid while all are paused; before a limit was learned together each
 *            replica learns on its own
 *   apart    the store is away: the last rate divided by the last number of replicas, each at its own offset in the interval
 * FleetMember does the exchanges.
 */
import type { QuotaUpdate, QuotaReply } from './quota-store.ts';
import type { ClockOffset } from './clock-offset.ts';
import { PermitBucket, type PermitSource } from '../../throttle/pacing/permit-bucket.ts';
import type { FleetQuotaState } from '../../throttle/throttle.ts';

/** How late a leased permit may be used, before it is lost: timers fire late. */
const GRACE_MS = 50;
/** A leased permit further ahead than this had to wait for other replicas. */
const SCARCE_MS = 20;
/** Calls above the limit go one at a time; the next waits this long for the response. */
const EXTRA_TIMEOUT_MS = 2_000;
/** Apart: the factor of a refusal and of an accepted call. */
const APART_DECREASE = 0.85;
const APART_INCREASE = 1.005;

/** Only this class writes the public fields, as it applies what the store has replied. */
export class QuotaLease implements PermitSource {
  readonly #clockOffset: ClockOffset;
  readonly #maxRate: () => number;
  /** Kept up to date all the time, so that they can take over at once. */
  #own: PermitSource | undefined;
  #isOwnPaused = (): boolean => true;
  /** Leased permits, each for the use at its own instant or a little later, so that all replicas together keep one even rate. Ascending. */
  #permitTimes: readonly number[] = [];
  state: 'unknown' | 'joined' | 'apart' = 'unknown';
  /** Permits per second of all replicas together. */
  fleetRate = Infinity;
  #burst = 1;
  epoch = -1;
  isFleetPaused = false;
  pausedUntil = -Infinity;
  replicaCount = 1;
  /** Position of this replica among all, from 0. */
  rank = 0;
  isLeader = false;
  /** When the leader's lease ends, as of the last exchange; Infinity when it is not known. */
  leaderUntil = Infinity;
  /** How far ahead the last lease began: so long do those before it use theirs. */
  #leadMs = 0;
  #apartSince = 0;
  #apartFactor = 1;
  #extraBucket: PermitBucket | undefined;
  #extraRate = 0;
  #extraSentAt = -Infinity;
  /** The last permit taken was above the limit. */
  tookExtra = false;
  /** Permits taken above the lease and not repaid. */
  #extraTaken = 0;

  /** @param maxRate permits per second that are configured as the most; Infinity without a limit */
  constructor(clockOffset: ClockOffset, maxRate: () => number = () => Infinity) {
    this.#clockOffset = clockOffset;
    this.#maxRate = maxRate;
  }

  /** No limit was learned together: each replica learns on its own, and needs leased permits only for a configured `maxRate`. */
  get isLearningAlone(): boolean {
    return this.state === 'unknown' || (this.state === 'joined' && this.fleetRate >= this.#maxRate());
  }

  /** Puts the lease before the permits that the throttle has without a fleet. @param isOwnPaused during a pause of the fleet only the throttle's own probe goes */
  wrap(own: PermitSource, isOwnPaused: () => boolean): PermitSource {
    this.#own = own;
    this.#isOwnPaused = isOwnPaused;
    return this;
  }

  get rate(): number {
    const ownRate = this.#neededOwn?.rate ?? Infinity;
    return this.state === 'joined' ? Math.min(ownRate, this.fleetRate) : ownRate;
  }

  get isScarce(): boolean {
    return this.#neededOwn !== undefined || this.#isLeaseScarce;
  }

  get ownRate(): number {
    return (this.fleetRate / this.replicaCount) * this.#apartFactor;
  }

  get ownBurst(): number {
    return Math.max(1, Math.floor(this.#burst / this.replicaCount));
  }

  /** Apart: replicas that lost the store together do not start together. */
  get apartOpenAt(): number {
    return this.#apartSince + (1000 / this.ownRate) * (1 + (this.rank + 1) / this.replicaCount);
  }

  /** Permits must be leased. */
  get isLimited(): boolean {
    return this.state === 'joined' && (this.isFleetPaused || Number.isFinite(this.fleetRate));
  }

  tryTake(now: number): boolean {
    const own = this.#neededOwn;
    if (this.#isHeldByFleet || (own !== undefined && !own.tryTake(now))) return false;
    if (this.state !== 'joined' || this.#tryTakeLeased(now)) return true;
    own?.giveBack(now);
    return false;
  }

  /** Infinity when only the next exchange can bring a permit. */
  nextAt(now: number, from = now): number {
    const own = this.#neededOwn;
    if (this.state !== 'joined') return own?.nextAt(now, from) ?? from;
    // Permits are asked for when they can be used, and not before.
    if (from > now) return from;
    if (this.#isHeldByFleet) return Infinity;
    return Math.max(own?.nextAt(now) ?? now, this.#nextLeasedAt(now));
  }

  /** If all replicas need as many permits. */
  nthAt(from: number, ahead: number): number {
    const ownAt = this.#neededOwn?.nthAt(from, ahead) ?? from;
    if (!this.isLimited || !Number.isFinite(this.fleetRate)) return ownAt;
    const times = this.#usableTimes(from);
    const leasedAt = times[ahead];
    if (leasedAt !== undefined) return Math.max(ownAt, from, leasedAt);
    const behind = ahead - times.length + (this.#isLeaseScarce ? 1 : 0);
    const afterLease = Math.max(from, times.at(-1) ?? -Infinity);
    return Math.max(ownAt, afterLease + (behind * this.replicaCount * 1000) / this.fleetRate);
  }

  /** The other replicas may need none. */
  minWaitMs(ahead: number): number | undefined {
    const own = this.#neededOwn;
    if (own !== undefined) return own.minWaitMs(ahead);
    return !this.isLimited || !Number.isFinite(this.fleetRate) ? 0 : (ahead * 1000) / this.fleetRate;
  }

  available(now: number): number {
    const own = this.#neededOwn?.available(now) ?? Infinity;
    if (!this.isLimited) return own;
    if (this.isFleetPaused) return Math.min(own, 0);
    // A request that may not wait is admitted while the next exchange would bring a permit at once.
    const leased = this.#usableTimes(now).filter((at) => at <= now).length;
    return Math.min(own, Math.max(leased, this.#isLeaseScarce ? 0 : 1));
  }

  recordUse(now: number, takenAt: number): void {
    this.#own?.recordUse(now, takenAt);
  }

  giveBack(now: number): void {
    this.#own?.giveBack(now);
  }

  setRate(now: number, rate: number, burst: number): void {
    this.#own?.setRate(now, rate, burst);
  }

  describe(now: number): FleetQuotaState {
    const { state, isLeader, replicaCount: replicas, fleetRate: rate } = this;
    return { state, isLeader, replicas, rate, leased: this.permitsLeft(now) };
  }

  permitsLeft(now: number): number {
    return this.#usableTimes(now).length;
  }

  /** How many of the wanted permits to request: those taken above the lease are repaid, at most half of a request at a time. */
  repayExtra(wanted: number): number {
    const repaid = Math.min(this.#extraTaken, Math.floor(wanted / 2));
    this.#extraTaken -= repaid;
    return wanted - repaid;
  }

  /** @param extraRate permits per second above the lease, for the leader's probes */
  setExtraRate(now: number, extraRate: number): void {
    if (extraRate === this.#extraRate) return;
    this.#extraRate = extraRate;
    if (!(extraRate > 0)) this.#extraBucket = undefined;
    else if (this.#extraBucket === undefined) this.#extraBucket = new PermitBucket(extraRate, 1);
    else this.#extraBucket.setRate(now, extraRate, 1);
  }

  onExtraEnded(): void {
    this.#extraSentAt = -Infinity;
  }

  /** @returns true when a new pause has begun */
  applyUpdate(now: number, update: QuotaUpdate): boolean {
    const isPause = update.epoch !== this.epoch && update.isFleetPaused;
    if (update.epoch !== this.epoch) this.#permitTimes = [];
    if (isPause) this.setExtraRate(now, 0);
    this.epoch = update.epoch;
    this.isFleetPaused = update.isFleetPaused;
    this.pausedUntil = this.#clockOffset.toLocalTime(update.pausedUntil);
    if (update.rate !== undefined) {
      this.fleetRate = update.rate;
      this.#burst = update.burst;
    }
    // Fewer are a matter of the next reply: until then each keeps the smaller part.
    this.replicaCount = Math.max(this.replicaCount, update.replicaCount ?? 1);
    return isPause;
  }

  /** @returns true when a new pause has begun */
  applyReply(now: number, reply: QuotaReply): boolean {
    const isPause = this.applyUpdate(now, reply);
    this.isLeader = reply.isLeader;
    if (!reply.isLeader) this.setExtraRate(now, 0);
    this.replicaCount = reply.replicaCount;
    this.rank = reply.rank;
    this.leaderUntil = now + reply.leaderLeftMs;
    const permitTimes = reply.permitTimes.map((at) => this.#clockOffset.toLocalTime(at));
    this.#permitTimes = [...this.#permitTimes, ...permitTimes].sort((one, other) => one - other);
    if (permitTimes[0] !== undefined) this.#leadMs = Math.max(0, permitTimes[0] - now);
    // Without a published limit a replica that knows one keeps it.
    if (reply.rate !== undefined || reply.isFleetPaused) this.state = 'joined';
    else if (this.state === 'joined') this.onDisconnected(now);
    return isPause;
  }

  onDisconnected(now: number): void {
    this.#permitTimes = [];
    this.setExtraRate(now, 0);
    this.isLeader = false;
    if (this.state !== 'joined') return;
    this.state = Number.isFinite(this.fleetRate) ? 'apart' : 'unknown';
    // The others may not know yet, and use what they have leased.
    this.#apartSince = Math.max(now + this.#leadMs, this.isFleetPaused ? this.pausedUntil : now);
    this.#leadMs = 0;
    this.isFleetPaused = false;
    this.#apartFactor = 1;
  }

  /** Apart, a refusal lowers only this replica's part. */
  adjustApartRate(isRefused: boolean): void {
    this.#apartFactor = isRefused
      ? Math.max(0.05, this.#apartFactor * APART_DECREASE)
      : Math.min(1, this.#apartFactor * APART_INCREASE);
  }

  /** The throttle's own permits where they count: while it works alone, or learns alone and a `maxRate` holds for all. */
  get #neededOwn(): PermitSource | undefined {
    return this.state !== 'joined' || this.isLearningAlone ? this.#own : undefined;
  }

  get #isHeldByFleet(): boolean {
    return this.state === 'joined' && this.isFleetPaused && !this.#isOwnPaused();
  }

  get #isLeaseScarce(): boolean {
    return this.#leadMs > SCARCE_MS;
  }

  #tryTakeLeased(now: number): boolean {
    this.tookExtra = false;
    if (!this.isLimited) return true;
    // The leader's own pause allows one call at a time.
    if (this.isFleetPaused) return this.isLeader && now >= this.pausedUntil;
    // Permits of the past may be used at once: the offset of the clocks is not exact.
    const [first = Infinity, ...later] = this.#usableTimes(now);
    if (first <= now) {
      this.#permitTimes = later;
      return true;
    }
    if (!this.#canSendExtra(now) || this.#extraBucket?.tryTake(now) !== true) return false;
    this.tookExtra = true;
    this.#extraTaken++;
    this.#extraSentAt = now;
    return true;
  }

  #nextLeasedAt(now: number): number {
    if (!this.isLimited) return now;
    if (this.isFleetPaused) return this.isLeader ? Math.max(now, this.pausedUntil) : Infinity;
    const extraAt = this.#extraBucket === undefined ? Infinity : this.#extraBucket.nextAt(now);
    return Math.min(
      Math.max(now, this.#usableTimes(now)[0] ?? Infinity),
      Math.max(extraAt, this.#canSendExtra(now) ? now : this.#extraSentAt + EXTRA_TIMEOUT_MS),
    );
  }

  #usableTimes(now: number): readonly number[] {
    const usable = this.#permitTimes.findIndex((at) => at >= now - GRACE_MS);
    if (usable !== 0) this.#permitTimes = usable < 0 ? [] : this.#permitTimes.slice(usable);
    return this.#permitTimes;
  }

  #canSendExtra(now: number): boolean {
    return this.#extraBucket !== undefined && now >= this.#extraSentAt + EXTRA_TIMEOUT_MS;
  }
}
