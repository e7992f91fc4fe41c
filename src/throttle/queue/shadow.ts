/**
 * `throttle.mode: observe`. Each call goes at once, and enters a second throttle as well, which enforces the same settings on nothing: whether
 * and how long a call would have waited is decided by the code that makes calls wait. There, a call takes as long as it really took.
 */
import type { Clock } from '../../platform/clock.ts';
import type { EventObserver, ObservedCalls } from '../../telemetry/events.ts';
import type { RecordPermit } from '../../telemetry/request-record.ts';
import type { ReceivedCall } from '../declared/call-match.ts';
import type { Governor } from '../pacing/governor.ts';
import type { Permit, QueueClass, Throttle, ThrottleTerms, Ticket } from '../throttle.ts';

const REPORT_INTERVAL_MS = 86_400_000;

/** Creates the second throttle, which has learned nothing. */
export type CreateEnforcing = (own: {
  readonly observe: EventObserver;
  readonly recordPermit: RecordPermit;
}) => Throttle;

/** What a part of a throttle reports with. */
export interface Reporting {
  readonly clock: Clock;
  readonly route: string;
  readonly observe: EventObserver;
}

const NO_CALLS = { calls: 0, wouldWait: 0, wouldWaitMs: 0, wouldRefuse: 0 };

export class Shadow {
  readonly #own: Reporting;
  /** Keeps the real counts. */
  readonly #observing: Governor;
  readonly #createEnforcing: CreateEnforcing;
  /** Created by the first call, with the counts of that time. */
  #enforcing: Throttle | undefined;
  #hasUnexplained = false;
  #since: number;
  #figures = { ...NO_CALLS };

  constructor(own: Reporting, observing: Governor, createEnforcing: CreateEnforcing) {
    this.#own = own;
    this.#observing = observing;
    this.#createEnforcing = createEnforcing;
    this.#since = own.clock.wallNow();
  }

  /** A request came. @returns to be called with the instant of each attempt */
  enter(now: number, deadlineAt: number, queueClass: QueueClass, endpoint: string, call?: ReceivedCall) {
    const { clock } = this.#own;
    const enforcing = (this.#enforcing ??= this.#create(now));
    return (sentAt: number): ShadowCall => {
      if (clock.wallNow() - this.#since >= REPORT_INTERVAL_MS) this.#report();
      this.#figures.calls++;
      return new ShadowCall(clock, enforcing.enter(deadlineAt, queueClass, false, endpoint, sentAt, call), sentAt);
    };
  }

  /** The upstream refused a call. A limit that is declared and used up explains it. */
  recordRefusal(): void {
    const declared = this.#observing.declared?.state(this.#own.clock.now()) ?? [];
    if (!declared.some(({ used, calls }) => used >= calls)) this.#hasUnexplained = true;
  }

  reconfigure({ throttle, queue }: ThrottleTerms): void {
    this.#enforcing?.reconfigure({ throttle: { ...throttle, mode: 'enforce' }, queue });
  }

  state(): ObservedCalls {
    const { learner } = this.#observing.ratePolicy;
    // What a learned limit does depends on how its probes end, which calls that are not paced cannot show.
    const isUnknown = learner !== undefined && (this.#hasUnexplained || !learner.isUnlimited);
    return { ...this.#figures, since: this.#since, certainty: isUnknown ? 'unknown' : 'exact' };
  }

  end(): void {
    this.#enforcing?.shutDown();
    this.#report();
  }

  #create(now: number): Throttle {
    const { route, observe } = this.#own;
    const { declared } = this.#observing;
    const enforcing = this.#createEnforcing({
      observe: (event) => {
        if (event.kind !== 'queue-rejected' || event.reason === 'client_left' || event.reason === 'draining') return;
        this.#figures.wouldRefuse++;
        observe({ kind: 'would-refuse', route });
      },
      recordPermit: (waitedMs) => {
        if (waitedMs > 0) this.#figures.wouldWait++;
        this.#figures.wouldWaitMs += waitedMs;
        observe({ kind: 'would-wait', route, waitedMs });
      },
    });
    if (declared !== undefined) enforcing.declaredLimits?.restore(declared.save(now), now);
    return enforcing;
  }

  #report(): void {
    const { clock, route, observe } = this.#own;
    if (this.#figures.calls > 0) observe({ kind: 'calls-observed', route, ...this.state() });
    this.#figures = { ...NO_CALLS };
    this.#hasUnexplained = false;
    this.#since = clock.wallNow();
  }
}

/** One attempt in the second throttle. It keeps its place there for as long as the attempt lasts, from its grant there on. */
export class ShadowCall {
  readonly #clock: Clock;
  readonly #ticket: Ticket;
  readonly #sentAt: number;
  #permit: Permit | undefined;
  /** In the order in which they are to be done, which that of timers would not keep. */
  readonly #acts: { readonly afterMs: number; readonly act: (permit: Permit) => void }[] = [];

  constructor(clock: Clock, ticket: Ticket, now: number) {
    this.#clock = clock;
    this.#ticket = ticket;
    this.#sentAt = now;
    this.#permit = ticket.tryTakePermit(now);
    if (this.#permit === undefined) void this.#wait();
  }

  /** Does with the permit there what is done with that of the attempt, as long after its grant. */
  replay(act: (permit: Permit) => void): void {
    this.#acts.push({ afterMs: this.#clock.now() - this.#sentAt, act });
    if (this.#acts.length === 1) this.#play();
  }

  /** The client left. */
  leave(): void {
    if (this.#permit === undefined) this.#ticket.leave();
    else this.#permit.release('other');
  }

  async #wait(): Promise<void> {
    this.#permit = await this.#ticket.waitForPermit().catch(() => undefined);
    this.#play();
  }

  #play(): void {
    const permit = this.#permit;
    const [next] = this.#acts;
    if (permit === undefined || next === undefined) return;
    const at = permit.grantedAt + next.afterMs;
    if (at > this.#clock.now()) {
      this.#clock.exactlyAt(at, () => this.#play());
      return;
    }
    this.#acts.shift();
    next.act(permit);
    this.#play();
  }
}
