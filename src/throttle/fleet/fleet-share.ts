/**
 * One replica's share of a quota that a fleet has in common (pure).
 *   unknown  never joined, or nobody has said what the limit is: this process goes by itself, as if there were no fleet
 *   joined   permits are slots given by the board; none is needed while no limit is known, and none is there while all are paused
 *   apart    the board is gone: its last rate, divided by the replicas that were there, each in its own place in the interval
 * It asks nobody: what is asked, and when, is fleet-member's.
 */
import type { QuotaNews, QuotaReply } from './fleet-board.ts';
import type { FleetClock } from './fleet-clock.ts';
import { FleetSlots } from './fleet-slots.ts';
import { PermitBucket } from '../pacing/permit-bucket.ts';
import type { FleetQuotaState } from '../throttle.ts';

/** A slot further ahead than this is one that others were waited for. */
const SCARCE_MS = 20;
/** Beyond the limit one call at a time; one that is not answered is waited for so long. */
const EXTRA_PATIENCE_MS = 2_000;
/** What a refusal leaves of a share that is used apart, and what an accepted call gives back. */
const CUT = 0.85;
const RECOVERY = 1.005;

export class FleetShare {
  readonly #clock: FleetClock;
  readonly #slots = new FleetSlots();
  #state: 'unknown' | 'joined' | 'apart' = 'unknown';
  #rate = Infinity;
  #burst = 1;
  #epoch = -1;
  #isHeld = false;
  #pausedUntil = -Infinity;
  #present = 1;
  #rank = 0;
  #isLeader = false;
  #isScarce = false;
  #apartSince = 0;
  #margin = 1;
  #extra: PermitBucket | undefined;
  #extraRate = 0;
  #extraSentAt = -Infinity;
  #tookExtra = false;
  /** Permits beyond the lease that were not made up for. */
  #extraTaken = 0;

  constructor(clock: FleetClock) {
    this.#clock = clock;
  }

  get state(): 'unknown' | 'joined' | 'apart' {
    return this.#state;
  }

  /** Permits per second of all replicas together. */
  get fleetRate(): number {
    return this.#rate;
  }

  get present(): number {
    return this.#present;
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  get isHeld(): boolean {
    return this.#isHeld;
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
    return (this.#rate / this.#present) * this.#margin;
  }

  get ownBurst(): number {
    return Math.max(1, Math.floor(this.#burst / this.#present));
  }

  /** Apart: nobody begins before its turn, so that replicas which lost the board together do not begin together. */
  get opensApartAt(): number {
    return this.#apartSince + (1000 / this.ownRate) * (1 + (this.#rank + 1) / this.#present);
  }

  /** True when permits are slots. */
  get isPaced(): boolean {
    return this.#state === 'joined' && (this.#isHeld || Number.isFinite(this.#rate));
  }

  /** True when the last permit taken was one beyond the limit. */
  get tookExtra(): boolean {
    return this.#tookExtra;
  }

  tryTake(now: number): boolean {
    this.#tookExtra = false;
    if (!this.isPaced) return true;
    // The leader's own pause lets one call through at a time.
    if (this.#isHeld) return this.#isLeader && now >= this.#pausedUntil;
    if (this.#slots.tryTake(now)) return true;
    if (!this.#mayExceed(now) || this.#extra?.tryTake(now) !== true) return false;
    this.#tookExtra = true;
    this.#extraTaken++;
    this.#extraSentAt = now;
    return true;
  }

  /** Infinity when only an answer of the board can help. */
  nextAt(now: number): number {
    if (!this.isPaced) return now;
    if (this.#isHeld) return this.#isLeader ? Math.max(now, this.#pausedUntil) : Infinity;
    const extraAt = this.#extra === undefined ? Infinity : this.#extra.nextAt(now);
    return Math.min(
      this.#slots.nextAt(now),
      Math.max(extraAt, this.#mayExceed(now) ? now : this.#extraSentAt + EXTRA_PATIENCE_MS),
    );
  }

  /** How long the one behind `ahead` others waits, if all replicas want as many. */
  nthAt(from: number, ahead: number): number {
    if (!this.isPaced || !Number.isFinite(this.#rate)) return from;
    const given = this.#slots.nthAt(from, ahead);
    if (given !== undefined) return Math.max(from, given);
    const behind = ahead - this.#slots.count(from) + (this.#isScarce ? 1 : 0);
    return Math.max(from, this.#slots.lastAt) + (behind * this.#present * 1000) / this.#rate;
  }

  /** How long it waits at the least: the others may want none. */
  leastWaitMs(ahead: number): number {
    return !this.isPaced || !Number.isFinite(this.#rate) ? 0 : (ahead * 1000) / this.#rate;
  }

  available(now: number): number {
    if (!this.isPaced) return Infinity;
    if (this.#isHeld) return 0;
    // Whoever may not wait at all is let in while a slot would be there at once.
    return Math.max(this.#slots.due(now), this.#isScarce ? 0 : 1);
  }

  /** For the admin port and the metrics. */
  describe(now: number): FleetQuotaState {
    const rate = this.#rate;
    return { state: this.#state, isLeader: this.#isLeader, replicas: this.#present, rate, leased: this.slotsLeft(now) };
  }

  slotsLeft(now: number): number {
    return this.#slots.count(now);
  }

  /** What is left of a wish for permits: what was taken beyond the lease goes to the others, half of it at a time. */
  repay(wanted: number): number {
    const repaid = Math.min(this.#extraTaken, Math.floor(wanted / 2));
    this.#extraTaken -= repaid;
    return wanted - repaid;
  }

  /** @param extraRate permits per second beyond the lease, for the leader's trials */
  setExtra(now: number, extraRate: number): void {
    if (extraRate === this.#extraRate) return;
    this.#extraRate = extraRate;
    if (!(extraRate > 0)) this.#extra = undefined;
    else if (this.#extra === undefined) this.#extra = new PermitBucket(extraRate, 1);
    else this.#extra.setPace(now, extraRate, 1);
  }

  /** A call beyond the limit has ended. */
  extraEnded(): void {
    this.#extraSentAt = -Infinity;
  }

  /** @returns whether a pause has begun that was not known of */
  hear(now: number, news: QuotaNews): boolean {
    const isPause = news.epoch !== this.#epoch && news.isHeld;
    if (news.epoch !== this.#epoch) this.#slots.clear();
    if (isPause) this.setExtra(now, 0);
    this.#epoch = news.epoch;
    this.#isHeld = news.isHeld;
    this.#pausedUntil = this.#clock.toLocal(news.pausedUntil);
    if (news.rate !== undefined) {
      this.#rate = news.rate;
      this.#burst = news.burst;
    }
    return isPause;
  }

  /** Takes up an answer. True when it tells of a pause that was not known of. */
  absorb(now: number, reply: QuotaReply): boolean {
    const isPause = this.hear(now, reply);
    this.#isLeader = reply.isLeader;
    if (!reply.isLeader) this.setExtra(now, 0);
    this.#present = reply.present;
    this.#rank = reply.rank;
    const slots = reply.slots.map((at) => this.#clock.toLocal(at));
    this.#slots.add(slots);
    if (slots.length > 0) this.#isScarce = (slots[0] ?? now) > now + SCARCE_MS;
    // While nobody has said what holds, whoever knows more than nothing goes by that.
    if (reply.rate !== undefined || reply.isHeld) this.#state = 'joined';
    else if (this.#state === 'joined') this.leave(now);
    return isPause;
  }

  /** The board is gone. */
  leave(now: number): void {
    this.#slots.clear();
    this.setExtra(now, 0);
    this.#isLeader = false;
    if (this.#state !== 'joined') return;
    this.#state = Number.isFinite(this.#rate) ? 'apart' : 'unknown';
    this.#apartSince = Math.max(now, this.#isHeld ? this.#pausedUntil : now);
    this.#isHeld = false;
    this.#margin = 1;
  }

  /** Apart, a refusal lowers this replica's part alone. */
  noteApart(isRefused: boolean): void {
    this.#margin = isRefused ? Math.max(0.05, this.#margin * CUT) : Math.min(1, this.#margin * RECOVERY);
  }

  #mayExceed(now: number): boolean {
    return this.#extra !== undefined && now >= this.#extraSentAt + EXTRA_PATIENCE_MS;
  }
}
