/**
 * One replica's share of a quota that a fleet has in common (pure).
 *   unknown  never joined, or nobody has said what the limit is: this process goes by itself, as if there were no fleet
 *   joined   permits are slots given by the board; none is needed while no limit is known, and none is there while all are paused
 *   apart    the board is gone: its last rate, divided by the replicas that were there, each in its own place in the interval
 * It asks nobody: what is asked, and when, is fleet-member's.
 */
import type { QuotaUpdate, QuotaReply } from './quota-store.ts';
import type { ClockOffset } from './clock-offset.ts';
import { ScheduledPermits } from './scheduled-permits.ts';
import { PermitBucket } from '../../throttle/pacing/permit-bucket.ts';
import type { FleetQuotaState } from '../../throttle/throttle.ts';

/** A slot further ahead than this is one that others were waited for. */
const SCARCE_MS = 20;
/** Beyond the limit one call at a time; one that is not answered is waited for so long. */
const EXTRA_TIMEOUT_MS = 2_000;
/** What a refusal leaves of a share that is used apart, and what an accepted call gives back. */
const APART_DECREASE = 0.85;
const APART_INCREASE = 1.005;

export class QuotaLease {
  readonly #clockOffset: ClockOffset;
  readonly #permits = new ScheduledPermits();
  #state: 'unknown' | 'joined' | 'apart' = 'unknown';
  #rate = Infinity;
  #burst = 1;
  #epoch = -1;
  #isFleetPaused = false;
  #pausedUntil = -Infinity;
  #replicaCount = 1;
  #rank = 0;
  #isLeader = false;
  #isScarce = false;
  #apartSince = 0;
  #apartFactor = 1;
  #extraBucket: PermitBucket | undefined;
  #extraRate = 0;
  #extraSentAt = -Infinity;
  #tookExtra = false;
  /** Permits beyond the lease that were not made up for. */
  #extraTaken = 0;

  constructor(clock: ClockOffset) {
    this.#clockOffset = clock;
  }

  get state(): 'unknown' | 'joined' | 'apart' {
    return this.#state;
  }

  /** Permits per second of all replicas together. */
  get fleetRate(): number {
    return this.#rate;
  }

  get replicaCount(): number {
    return this.#replicaCount;
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  get isFleetPaused(): boolean {
    return this.#isFleetPaused;
  }

  get epoch(): number {
    return this.#epoch;
  }

  get isScarce(): boolean {
    return this.#isScarce;
  }

  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  /** Permits per second, apart. */
  get ownRate(): number {
    return (this.#rate / this.#replicaCount) * this.#apartFactor;
  }

  get ownBurst(): number {
    return Math.max(1, Math.floor(this.#burst / this.#replicaCount));
  }

  /** Apart: nobody begins before its turn, so that replicas which lost the board together do not begin together. */
  get apartOpenAt(): number {
    return this.#apartSince + (1000 / this.ownRate) * (1 + (this.#rank + 1) / this.#replicaCount);
  }

  /** True when permits are slots. */
  get isLimited(): boolean {
    return this.#state === 'joined' && (this.#isFleetPaused || Number.isFinite(this.#rate));
  }

  /** True when the last permit taken was one beyond the limit. */
  get tookExtra(): boolean {
    return this.#tookExtra;
  }

  tryTake(now: number): boolean {
    this.#tookExtra = false;
    if (!this.isLimited) return true;
    // The leader's own pause lets one call through at a time.
    if (this.#isFleetPaused) return this.#isLeader && now >= this.#pausedUntil;
    if (this.#permits.tryTake(now)) return true;
    if (!this.#canSendExtra(now) || this.#extraBucket?.tryTake(now) !== true) return false;
    this.#tookExtra = true;
    this.#extraTaken++;
    this.#extraSentAt = now;
    return true;
  }

  /** Infinity when only an answer of the board can help. */
  nextAt(now: number): number {
    if (!this.isLimited) return now;
    if (this.#isFleetPaused) return this.#isLeader ? Math.max(now, this.#pausedUntil) : Infinity;
    const extraAt = this.#extraBucket === undefined ? Infinity : this.#extraBucket.nextAt(now);
    return Math.min(
      this.#permits.nextAt(now),
      Math.max(extraAt, this.#canSendExtra(now) ? now : this.#extraSentAt + EXTRA_TIMEOUT_MS),
    );
  }

  /** How long the one behind `ahead` others waits, if all replicas want as many. */
  nthAt(from: number, ahead: number): number {
    if (!this.isLimited || !Number.isFinite(this.#rate)) return from;
    const given = this.#permits.nthAt(from, ahead);
    if (given !== undefined) return Math.max(from, given);
    const behind = ahead - this.#permits.count(from) + (this.#isScarce ? 1 : 0);
    return Math.max(from, this.#permits.lastAt) + (behind * this.#replicaCount * 1000) / this.#rate;
  }

  /** How long it waits at the least: the others may want none. */
  minWaitMs(ahead: number): number {
    return !this.isLimited || !Number.isFinite(this.#rate) ? 0 : (ahead * 1000) / this.#rate;
  }

  available(now: number): number {
    if (!this.isLimited) return Infinity;
    if (this.#isFleetPaused) return 0;
    // Whoever may not wait at all is let in while a slot would be there at once.
    return Math.max(this.#permits.due(now), this.#isScarce ? 0 : 1);
  }

  /** For the admin port and the metrics. */
  describe(now: number): FleetQuotaState {
    const rate = this.#rate;
    return {
      state: this.#state,
      isLeader: this.#isLeader,
      replicas: this.#replicaCount,
      rate,
      leased: this.permitsLeft(now),
    };
  }

  permitsLeft(now: number): number {
    return this.#permits.count(now);
  }

  /** What is left of a wish for permits: what was taken beyond the lease goes to the others, half of it at a time. */
  repayExtra(wanted: number): number {
    const repaid = Math.min(this.#extraTaken, Math.floor(wanted / 2));
    this.#extraTaken -= repaid;
    return wanted - repaid;
  }

  /** @param extraRate permits per second beyond the lease, for the leader's trials */
  setExtraRate(now: number, extraRate: number): void {
    if (extraRate === this.#extraRate) return;
    this.#extraRate = extraRate;
    if (!(extraRate > 0)) this.#extraBucket = undefined;
    else if (this.#extraBucket === undefined) this.#extraBucket = new PermitBucket(extraRate, 1);
    else this.#extraBucket.setRate(now, extraRate, 1);
  }

  /** A call beyond the limit has ended. */
  onExtraEnded(): void {
    this.#extraSentAt = -Infinity;
  }

  /** @returns whether a pause has begun that was not known of */
  applyUpdate(now: number, news: QuotaUpdate): boolean {
    const isPause = news.epoch !== this.#epoch && news.isFleetPaused;
    if (news.epoch !== this.#epoch) this.#permits.clear();
    if (isPause) this.setExtraRate(now, 0);
    this.#epoch = news.epoch;
    this.#isFleetPaused = news.isFleetPaused;
    this.#pausedUntil = this.#clockOffset.toLocalTime(news.pausedUntil);
    if (news.rate !== undefined) {
      this.#rate = news.rate;
      this.#burst = news.burst;
    }
    return isPause;
  }

  /** Takes up an answer. True when it tells of a pause that was not known of. */
  applyReply(now: number, reply: QuotaReply): boolean {
    const isPause = this.applyUpdate(now, reply);
    this.#isLeader = reply.isLeader;
    if (!reply.isLeader) this.setExtraRate(now, 0);
    this.#replicaCount = reply.replicaCount;
    this.#rank = reply.rank;
    const slots = reply.permitTimes.map((at) => this.#clockOffset.toLocalTime(at));
    this.#permits.add(slots);
    if (slots.length > 0) this.#isScarce = (slots[0] ?? now) > now + SCARCE_MS;
    // While nobody has said what holds, whoever knows more than nothing goes by that.
    if (reply.rate !== undefined || reply.isFleetPaused) this.#state = 'joined';
    else if (this.#state === 'joined') this.onDisconnected(now);
    return isPause;
  }

  /** The board is gone. */
  onDisconnected(now: number): void {
    this.#permits.clear();
    this.setExtraRate(now, 0);
    this.#isLeader = false;
    if (this.#state !== 'joined') return;
    this.#state = Number.isFinite(this.#rate) ? 'apart' : 'unknown';
    this.#apartSince = Math.max(now, this.#isFleetPaused ? this.#pausedUntil : now);
    this.#isFleetPaused = false;
    this.#apartFactor = 1;
  }

  /** Apart, a refusal lowers this replica's part alone. */
  adjustApartRate(isRefused: boolean): void {
    this.#apartFactor = isRefused
      ? Math.max(0.05, this.#apartFactor * APART_DECREASE)
      : Math.min(1, this.#apartFactor * APART_INCREASE);
  }

  #canSendExtra(now: number): boolean {
    return this.#extraBucket !== undefined && now >= this.#extraSentAt + EXTRA_TIMEOUT_MS;
  }
}
