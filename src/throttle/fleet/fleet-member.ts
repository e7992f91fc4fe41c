/**
 * A throttle's place in its fleet: asks the board for permits when the queue needs them, reports, and says at once when it was refused.
 * One question at a time, and as few as will do. A board that does not answer twice running is gone, until it answers. What
 * the answers mean is fleet-share's, what a leader does fleet-leader's.
 */
import { Alarm } from '../pacing/alarm.ts';
import type { QuotaNews, QuotaReply, QuotaRequest } from './fleet-board.ts';
import { FleetClock } from './fleet-clock.ts';
import type { Situation } from './fleet-leader.ts';
import { FleetLeadership } from './fleet-leadership.ts';
import { FleetPace } from './fleet-pace.ts';
import { FleetOutbox } from './fleet-outbox.ts';
import { writeCalls } from './fleet-report.ts';
import { nextQuestionAt } from './fleet-schedule.ts';
import { FleetShare } from './fleet-share.ts';
import type { FleetHost, FleetMemberOptions, FleetTerms } from './fleet-terms.ts';
import type { Pace } from '../pacing/pace.ts';

/** Permits asked for at once. */
const MOST_WANTED = 16;
/** Slots left at which more are asked for, so that the next are there when these are used. */
const FEW_LEFT = 1;
/** A stated wait that others were given is worth a pause of this replica's own. */
const LONG_PAUSE_MS = 1_000;

export class FleetMember {
  readonly share: FleetShare;
  readonly #options: FleetMemberOptions;
  readonly #boardClock = new FleetClock();
  readonly #outbox = new FleetOutbox(this.#boardClock);
  readonly #leadership: FleetLeadership;
  readonly #alarm: Alarm;
  #terms: FleetTerms;
  #host: FleetHost | undefined;
  #own: Pace | undefined;
  #reply: QuotaReply | undefined;
  #need = 0;
  #isAsking = false;
  #isUrgent = true;
  #missed = 0;
  #askedAt = -Infinity;
  #againAt = -Infinity;
  #hasJoined = false;
  #hasLeft = false;

  constructor(options: FleetMemberOptions) {
    this.#options = options;
    this.#terms = options.terms;
    this.share = new FleetShare(this.#boardClock);
    this.#leadership = new FleetLeadership(this.#boardClock, options.learning, options.terms);
    const { clock } = options;
    this.#alarm = new Alarm(
      (at, run) => clock.after(at - clock.now(), run),
      () => this.#plan(),
    );
  }

  /** The pace of a replica, around the one it would have alone. */
  createPace(own: Pace): Pace {
    this.#own = own;
    const { share } = this;
    const { report } = this.#outbox;
    return new FleetPace({ share, report, leadership: this.#leadership, own, terms: () => this.#terms });
  }

  /** Begins to hear, and to ask once the board is there: before that no timer is set. */
  start(host: FleetHost): void {
    this.#host = host;
    this.#options.board.listen({
      joined: () => this.#joined(),
      lost: () => this.#lost(),
      news: (news) => this.#hear(news),
    });
  }

  /** From now on these hold. */
  reconfigure(terms: FleetTerms): void {
    this.#terms = terms;
    this.#leadership.reconfigure(terms);
    this.#isUrgent = true;
  }

  /** So many wait for a permit now. */
  need(count: number): void {
    // Nobody wanted anything before, either. Whether a pause can be ended depends on who waits.
    const isSame = count === 0 && this.#need === 0 && !this.share.isHeld && !this.#isUrgent;
    this.#need = count;
    if (!isSame) this.#plan();
  }

  /** This replica was refused. */
  refused(statedWaitMs: number | undefined): void {
    if (this.share.state !== 'joined' || !this.#boardClock.isSet) return;
    this.#outbox.refused(this.#options.clock.now(), statedWaitMs);
    this.#isUrgent = true;
    this.#plan();
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
    if (this.#hasLeft || this.#isAsking || !this.#hasJoined) return;
    const dueAt = this.#dueAt(now);
    if (dueAt > now) this.#alarm.set(dueAt);
    else void this.#ask(now);
  }

  #dueAt(now: number): number {
    const { share } = this;
    const left = share.slotsLeft(now);
    const isShort = share.isPaced && this.#need > left && left <= FEW_LEFT;
    return nextQuestionAt({
      askedAt: this.#isUrgent ? -Infinity : this.#askedAt,
      missed: this.#missed,
      isJoined: share.state === 'joined',
      isLeader: this.#leadership.isHeld,
      isHeld: share.isHeld,
      mayResume: share.isHeld && this.#leadership.mayResume(now, this.#situation()),
      settlesAt: this.#isUrgent ? -Infinity : this.#leadership.settlesAt,
      wantedAt: isShort ? this.#againAt : Infinity,
    });
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
    const { rate, burst } = this.#terms;
    const { share } = this;
    const hasCalls = this.#outbox.isActive(now) || this.#need > 0;
    return {
      id: this.#options.id,
      want: this.#wanted(now),
      activity: hasCalls && !this.#leadership.yields(now) ? 'active' : 'idle',
      fixed: rate === 'auto' ? undefined : { rate, burst },
      size: share.present,
      calls: this.#takeCalls(),
      refusal: this.#outbox.takeRefusal(),
      published: this.#leadership.publication(now, this.#situation()),
      version: this.#reply?.version ?? 0,
    };
  }

  #wanted(now: number): number {
    const { share } = this;
    const left = share.slotsLeft(now);
    if (!share.isPaced || share.isHeld || now < this.#againAt || left > FEW_LEFT) return 0;
    return share.repay(Math.max(0, Math.min(MOST_WANTED, this.#need - left)));
  }

  /** What is to be told of the calls since the last report; a leader tells itself. */
  #takeCalls(): string {
    const calls = this.#outbox.takeCalls();
    this.#leadership.hear(calls);
    if (this.#terms.rate !== 'auto' || this.#leadership.isHeld) return '';
    return writeCalls(calls, (at) => this.#boardClock.toBoard(at));
  }

  #situation(): Situation {
    const { epoch, isHeld, pausedUntil } = this.share;
    const { rate, burst = 1 } = this.#reply ?? {};
    const told = rate === undefined ? undefined : { rate, burst };
    const { isClosed = false, isIdle = true } = this.#host ?? {};
    return { epoch, isHeld, pausedUntil, told, isClosed, isIdle };
  }

  #absorb(now: number, askedAt: number, reply: QuotaReply): void {
    this.#missed = 0;
    this.#boardClock.learn(askedAt, now, reply.boardNow);
    this.#reply = reply;
    this.#againAt = now + reply.againInMs;
    if (this.share.absorb(now, reply)) this.#pause(now);
    const extraRate = this.#leadership.absorb(now, reply, () => this.#own?.snapshot(now));
    this.share.setExtra(now, extraRate);
    if (this.#leadership.publication(now, this.#situation()) !== undefined) this.#isUrgent = true;
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
    this.#leadership.paused(now);
    // So that the leader knows what was accepted before.
    if (!share.isLeader && this.#outbox.report.size > 0) this.#isUrgent = true;
    const leftMs = share.pausedUntil - now;
    const isConcerned = share.isLeader || leftMs > LONG_PAUSE_MS;
    if (isConcerned && this.#host?.isClosed === false) this.#host.pauseWithOthers(leftMs > 0 ? leftMs : undefined);
  }

  #miss({ refusal }: QuotaRequest): void {
    this.#missed++;
    this.#outbox.putBack(refusal);
    if (this.#missed > 1) this.#goApart();
  }

  #lost(): void {
    this.#missed = 2;
    this.#goApart();
    this.#host?.refresh();
    this.#plan();
  }

  #goApart(): void {
    const now = this.#options.clock.now();
    this.#leadership.lost();
    this.#outbox.lost();
    this.share.leave(now);
  }

  #joined(): void {
    this.#missed = 0;
    const now = this.#options.clock.now();
    this.#leadership.joined(now, this.#hasJoined);
    this.#hasJoined = true;
    this.#outbox.joined(now);
    this.#isUrgent = true;
    this.#plan();
  }
}
