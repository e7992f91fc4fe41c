/**
 * A throttle's place in its fleet: asks the board for permits when the queue needs them, reports, and says at once when it was refused.
 * One question at a time, and as few as will do. A board that does not answer twice running is gone, until it answers. What
 * the answers mean is fleet-share's, what a leader does fleet-leader's.
 */
import type { Clock } from '../clock.ts';
import { Alarm } from './alarm.ts';
import type { QuotaBoard, QuotaNews, QuotaReply, QuotaRequest } from './fleet-board.ts';
import { FleetClock } from './fleet-clock.ts';
import { FleetLeader, readModel } from './fleet-leader.ts';
import { FleetPace } from './fleet-pace.ts';
import { FleetReport, readCalls, writeCalls } from './fleet-report.ts';
import { FleetShare } from './fleet-share.ts';
import type { GateTerms } from './gate.ts';
import type { Pace } from './pace.ts';
import { DEFAULT_LEARNING, type LearningParameters } from './learning/parameters.ts';
import type { ThrottleOptions } from './throttle-options.ts';
import type { FleetQuotaState } from './throttle.ts';

export interface FleetMemberOptions {
  readonly board: QuotaBoard;
  /** Tells replicas apart. */
  readonly id: string;
  readonly terms: FleetTerms;
  readonly learning: LearningParameters;
  readonly clock: Clock;
}

/** What is configured, and may change. */
export type FleetTerms = Pick<GateTerms, 'rate' | 'burst' | 'maxRate' | 'maxInFlight'>;

/** The throttle around it. */
export interface FleetHost {
  /** What is granted may have changed. */
  refresh(): void;
  /** Others were refused: all pause. */
  pauseWithOthers(statedWaitMs: number | undefined): void;
  /** A pause is not over, or its probe not answered. */
  readonly isClosed: boolean;
  /** No call is under way, and nobody waits. */
  readonly isIdle: boolean;
}

/** Permits asked for at once. */
const MOST_WANTED = 16;
/** Slots left at which more are asked for, so that the next are there when these are used. */
const FEW_LEFT = 1;
/** All are pushed a pause and report at once; so long the leader waits for that. */
const SETTLE_MS = 60;
const FOLLOWER_BEAT_MS = 4_500;
const LEADER_BEAT_MS = 700;
const HELD_BEAT_MS = 2_000;
const LOST_BEAT_MS = 250;
const MISSED_BEAT_MS = 20;
/** Whoever has called within this time is active. */
const ACTIVE_MS = 10_000;
/** When the fleet is joined again, older calls are not told any more. */
const OLDEST_TOLD_MS = 1_000;
/** A stated wait that others were given is worth a pause of this replica's own. */
const LONG_PAUSE_MS = 1_000;

export class FleetMember {
  readonly share: FleetShare;
  readonly #options: FleetMemberOptions;
  readonly #boardClock = new FleetClock();
  readonly #report = new FleetReport();
  readonly #alarm: Alarm;
  #terms: FleetTerms;
  #host: FleetHost | undefined;
  #own: Pace | undefined;
  #leader: FleetLeader | undefined;
  #reply: QuotaReply | undefined;
  #model = '';
  #refusal: { readonly at: number; readonly statedWaitMs: number | undefined } | undefined;
  #need = 0;
  #isAsking = false;
  #isUrgent = true;
  #missed = 0;
  #askedAt = -Infinity;
  #againAt = -Infinity;
  #tellSince = -Infinity;
  #settlesAt = Infinity;
  #activeAt = -Infinity;
  #hasLeft = false;

  constructor(options: FleetMemberOptions) {
    this.#options = options;
    this.#terms = options.terms;
    this.share = new FleetShare(this.#boardClock);
    this.#alarm = new Alarm(
      (at, run) => options.clock.after(at - options.clock.now(), run),
      () => this.#plan(),
    );
  }

  /** The pace of a replica, around the one it would have alone. */
  createPace(own: Pace): Pace {
    this.#own = own;
    return new FleetPace({
      share: this.share,
      report: this.#report,
      own,
      isFixed: this.#fixed !== undefined,
      maxInFlight: this.#terms.maxInFlight,
      opensAt: (now) => this.#leader?.opensAt(now, this.share.epoch) ?? Infinity,
      believed: (wallAt) => {
        const learned = this.#leader?.learned(wallAt) ?? readModel(this.#model).learned;
        return learned && { ...learned, rate: this.share.fleetRate };
      },
      keep: (now) => this.#leader?.snapshot(now) ?? (readModel(this.#model).snapshot as object | undefined),
    });
  }

  /** Begins to ask, and to hear. */
  start(host: FleetHost): void {
    this.#host = host;
    this.#options.board.listen({
      joined: () => this.#joined(),
      lost: () => this.#lost(),
      news: (news) => this.#hear(news),
    });
    this.#plan();
  }

  /** From now on these hold. */
  reconfigure(terms: FleetTerms): void {
    this.#terms = terms;
    // What was learned is passed on with the model.
    this.#leader = undefined;
    this.#isUrgent = true;
  }

  /** So many wait for a permit now. */
  need(count: number): void {
    this.#need = count;
    this.#plan();
  }

  /** This replica was refused. */
  refused(statedWaitMs: number | undefined): void {
    if (this.share.state !== 'joined' || !this.#boardClock.isSet) return;
    const at = this.#boardClock.toBoard(this.#report.refusedAt ?? this.#options.clock.now());
    const longest = Math.max(statedWaitMs ?? 0, this.#refusal?.statedWaitMs ?? 0);
    this.#refusal = { at: Math.max(at, this.#refusal?.at ?? at), statedWaitMs: longest > 0 ? longest : undefined };
    this.#isUrgent = true;
    this.#plan();
  }

  state(): FleetQuotaState {
    const { state, isLeader, present, fleetRate } = this.share;
    return { state, isLeader, replicas: present, rate: fleetRate, leased: this.share.slotsLeft(this.#options.clock.now()) };
  }

  /** Leaves the fleet for good. */
  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#alarm.set(Infinity);
    void this.#options.board.exchange({ ...this.#compose(this.#options.clock.now()), want: 0, activity: 'leaving' });
  }

  #plan(): void {
    const now = this.#options.clock.now();
    if (this.#hasLeft || this.#isAsking || this.#host === undefined) return;
    const dueAt = this.#dueAt(now);
    if (dueAt > now) this.#alarm.set(dueAt);
    else void this.#ask(now);
  }

  #dueAt(now: number): number {
    if (this.#isUrgent) return now;
    const beatAt = this.#askedAt + this.#beatMs();
    const { share } = this;
    if (share.isHeld && this.#leader !== undefined) {
      if (this.#leader.mayResume(now, this.#situation())) return now;
      return this.#settlesAt > this.#askedAt ? this.#settlesAt : beatAt;
    }
    const left = share.slotsLeft(now);
    const isShort = share.isPaced && !share.isHeld && this.#need > left && left <= FEW_LEFT;
    return isShort ? Math.min(beatAt, this.#againAt) : beatAt;
  }

  #beatMs(): number {
    if (this.#missed > 0) return this.#missed === 1 ? MISSED_BEAT_MS : LOST_BEAT_MS;
    if (this.share.state !== 'joined') return LOST_BEAT_MS;
    if (this.share.isLeader) return LEADER_BEAT_MS;
    return this.share.isHeld ? HELD_BEAT_MS : FOLLOWER_BEAT_MS;
  }

  async #ask(now: number): Promise<void> {
    const { board, clock } = this.#options;
    this.#isAsking = true;
    this.#isUrgent = false;
    this.#askedAt = now;
    this.#alarm.set(Infinity);
    const request = this.#compose(now);
    const reply = await board.exchange(request);
    this.#isAsking = false;
    if (this.#hasLeft) return;
    if (reply === undefined) this.#miss(request);
    else this.#absorb(clock.now(), now, reply);
    this.#host?.refresh();
    this.#plan();
  }

  #compose(now: number): QuotaRequest {
    const fixed = this.#fixed;
    const { share } = this;
    if (!this.#report.isEmpty) this.#activeAt = now;
    const isActive = now - this.#activeAt < ACTIVE_MS || this.#need > 0;
    const left = share.slotsLeft(now);
    const wants = share.isPaced && !share.isHeld && now >= this.#againAt && left <= FEW_LEFT;
    const toBoard = (at: number): number => this.#boardClock.toBoard(at);
    const calls = this.#boardClock.isSet ? this.#report.take(this.#tellSince) : [];
    this.#tellSince = -Infinity;
    this.#leader?.hear(calls);
    const refusal = this.#refusal;
    this.#refusal = undefined;
    return {
      id: this.#options.id,
      want: wants ? share.repay(Math.max(0, Math.min(MOST_WANTED, this.#need - left))) : 0,
      activity: isActive ? 'active' : 'idle',
      fixed,
      size: share.present,
      calls: fixed === undefined && this.#leader === undefined ? writeCalls(calls, toBoard) : '',
      refusal,
      published: this.#leader?.publication(now, this.#situation(), toBoard),
      version: this.#reply?.version ?? 0,
    };
  }

  #situation() {
    const { epoch, isHeld, pausedUntil } = this.share;
    const { rate, burst = 1 } = this.#reply ?? {};
    const told = rate === undefined ? undefined : { rate, burst };
    return {
      epoch,
      isHeld,
      pausedUntil,
      told,
      isClosed: this.#host?.isClosed ?? false,
      isIdle: this.#host?.isIdle ?? true,
    };
  }

  #absorb(now: number, askedAt: number, reply: QuotaReply): void {
    this.#missed = 0;
    this.#boardClock.learn(askedAt, now, reply.boardNow);
    this.#reply = reply;
    if (reply.model !== '') this.#model = reply.model;
    this.#againAt = now + reply.againInMs;
    const isPause = this.share.absorb(now, reply);
    if (isPause) this.#pause(now);
    if (reply.isLeader) this.#lead(now, reply);
    else this.#leader = undefined;
  }

  #lead(now: number, reply: QuotaReply): void {
    const fixed = this.#fixed;
    const toLocal = (at: number): number => this.#boardClock.toLocal(at);
    this.#leader ??= this.#createLeader(now);
    this.#leader.hear(readCalls(reply.mail, toLocal));
    const isSettled = reply.isHeld && now >= this.#settlesAt;
    const knownUntil = reply.present === 1 ? now : Math.min(now, toLocal(reply.oldestReportAt));
    this.#leader.digest(isSettled ? now : knownUntil, isSettled || fixed !== undefined ? reply.epoch : -1);
    if (reply.isHeld && this.#settlesAt === Infinity) this.#settlesAt = now + SETTLE_MS;
    this.share.setExtra(now, reply.isHeld ? 0 : this.#leader.extraRate(now));
    const toBoard = (at: number): number => this.#boardClock.toBoard(at);
    if (this.#leader.publication(now, this.#situation(), toBoard) !== undefined) this.#isUrgent = true;
  }

  #createLeader(now: number): FleetLeader {
    const known = readModel(this.#model).snapshot ?? this.#own?.snapshot(now);
    return new FleetLeader(this.#fixed, { ...this.#terms, learning: this.#options.learning }, now, known);
  }

  get #fixed(): { readonly rate: number; readonly burst: number } | undefined {
    const { rate, burst } = this.#terms;
    return rate === 'auto' ? undefined : { rate, burst };
  }

  #hear(news: QuotaNews): void {
    const now = this.#options.clock.now();
    if (this.#hasLeft || this.#missed > 1) return;
    if (this.share.state !== 'joined') this.#isUrgent = true;
    else if (this.share.hear(now, news)) this.#pause(now);
    this.#againAt = -Infinity;
    this.#host?.refresh();
    this.#plan();
  }

  #pause(now: number): void {
    const { share } = this;
    this.#settlesAt = now + SETTLE_MS;
    // So that the leader knows what was accepted before.
    if (!share.isLeader && !this.#report.isEmpty) this.#isUrgent = true;
    const leftMs = share.pausedUntil - now;
    const isConcerned = share.isLeader || leftMs > LONG_PAUSE_MS;
    if (isConcerned && this.#host?.isClosed === false) this.#host.pauseWithOthers(leftMs > 0 ? leftMs : undefined);
  }

  #miss({ refusal }: QuotaRequest): void {
    this.#missed++;
    // Calls may have been told all the same; to be told twice would do more harm than not at all.
    if (refusal !== undefined && this.#missed === 1) this.#refusal = refusal;
    if (this.#missed > 1) this.#goApart();
  }

  #lost(): void {
    this.#missed = 2;
    this.#goApart();
    this.#host?.refresh();
  }

  #goApart(): void {
    const now = this.#options.clock.now();
    this.#leader = undefined;
    this.#refusal = undefined;
    this.share.leave(now);
  }

  #joined(): void {
    this.#missed = 0;
    this.#tellSince = this.#options.clock.now() - OLDEST_TOLD_MS;
    this.#isUrgent = true;
    this.#plan();
  }
}

/** Undefined without a fleet. It has not begun to ask. */
export function joinFleet({ fleet, throttle, learning, clock }: ThrottleOptions): FleetMember | undefined {
  return fleet && new FleetMember({ ...fleet, terms: throttle, learning: learning ?? DEFAULT_LEARNING, clock });
}
