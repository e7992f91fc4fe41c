/**
 * Calls with deadlines through one throttle, in virtual time: arrivals that do not wait for each other, an upstream that takes its time for each
 * call and may hide a limit, and clients that get nothing after their deadline. Deterministic for a seed. Used by tests and by the benchmark.
 */
import { SidecarError } from '../../src/platform/errors.ts';
import type { Random } from '../../src/platform/clock.ts';
import { describeEndpoint } from '../../src/throttle/endpoint.ts';
import { createThrottle, type ThrottleOptions } from '../../src/throttle/queue/queueing-throttle.ts';
import type { Permit, Throttle, Ticket } from '../../src/throttle/throttle.ts';
import { ACCEPTED, rateLimited } from './fixture.ts';
import { AUTO, bucketLimiter, type Limiter, seeded } from './simulation.ts';
import { SteppingClock } from './stepping-clock.ts';

/** One kind of call. */
export interface CallKind {
  readonly path: string;
  /** Default: all kinds are of one caller. */
  readonly caller?: string;
  /** Calls per second. */
  readonly perSecond: number;
  readonly deadlineMs: number;
  /** From the send to the response head. */
  readonly latencyMs: (at: number, random: Random) => number;
}

export interface DeadlineWorld {
  readonly kinds: readonly CallKind[];
  readonly throttle: Partial<ThrottleOptions['throttle']>;
  readonly queue?: Partial<ThrottleOptions['queue']>;
  /** Default: the upstream accepts all calls. */
  readonly limiter?: Limiter;
  readonly durationMs: number;
  /** Calls that come before it are not counted. Default 0. */
  readonly countedFromMs?: number;
  /** `bursts`: the calls of each second come at its beginning. Default `poisson`. */
  readonly arrivals?: 'poisson' | 'even' | 'bursts';
  readonly seed?: number;
}

/** How the calls of one kind ended, and what the upstream did for them. */
export interface CallFigures {
  calls: number;
  served: number;
  /** The upstream carried it out, and its response came after the deadline. */
  inVain: number;
  /** Rejected on arrival. */
  refusedAtOnce: number;
  /** Left the queue without a permit. */
  timedOut: number;
}

/** A permit that was granted to a call. */
export interface GrantRecord {
  readonly kind: CallKind;
  readonly at: number;
  readonly remainingMs: number;
  readonly waitedMs: number;
}

export interface RefusalRecord {
  readonly at: number;
  /** Requests that waited. */
  readonly queued: number;
  readonly inFlight: number;
}

export interface DeadlineResult {
  /** In the order of `kinds`. */
  readonly figures: readonly CallFigures[];
  readonly grants: readonly GrantRecord[];
  /** Calls that were rejected on arrival. */
  readonly refusals: readonly RefusalRecord[];
  /** Carried out by the upstream in the counted time. */
  readonly executed: number;
}

/** As an upstream with a limit that it does not state. */
export function hiddenLimit(perSecond: number): Limiter {
  return bucketLimiter(perSecond, Math.max(1, perSecond / 4));
}

export async function playDeadlines(world: DeadlineWorld): Promise<DeadlineResult> {
  const player = new Player(world);
  return await player.run();
}

class Player {
  readonly #world: DeadlineWorld;
  readonly #clock = new SteppingClock();
  readonly #random: Random;
  readonly #throttle: Throttle;
  readonly #figures: CallFigures[];
  readonly #grants: GrantRecord[] = [];
  readonly #refusals: RefusalRecord[] = [];
  #executed = 0;

  constructor(world: DeadlineWorld) {
    this.#world = world;
    this.#random = seeded(world.seed ?? 1);
    this.#figures = world.kinds.map(() => ({ calls: 0, served: 0, inVain: 0, refusedAtOnce: 0, timedOut: 0 }));
    this.#throttle = createThrottle({
      route: 'default',
      throttle: { ...AUTO, ...world.throttle },
      queue: { max: 1000, timeoutMs: 30_000, ...world.queue },
      clock: this.#clock,
      random: this.#random,
      observe: () => undefined,
    });
  }

  async run(): Promise<DeadlineResult> {
    const sources = this.#world.kinds.map((kind, index) => this.#offer(kind, index));
    await this.#clock.runUntilIdle();
    await Promise.all(sources);
    const executed = this.#executed;
    return { figures: this.#figures, grants: this.#grants, refusals: this.#refusals, executed };
  }

  #isCounted(at: number): boolean {
    return at >= (this.#world.countedFromMs ?? 0) && at < this.#world.durationMs;
  }

  async #offer(kind: CallKind, index: number): Promise<void> {
    const { durationMs, arrivals = 'poisson', seed = 1 } = this.#world;
    // The arrivals of one kind do not depend on the other kinds.
    const random = seeded(1000 * seed + index);
    const figures = this.#figures[index]!;
    const intervalMs = 1000 / kind.perSecond;
    const discarded: CallFigures = { calls: 0, served: 0, inVain: 0, refusedAtOnce: 0, timedOut: 0 };
    for (let nextAt = 0, made = 0; nextAt < durationMs; made++) {
      await this.#clock.sleep(nextAt - this.#clock.now());
      void this.#call(kind, this.#isCounted(nextAt) ? figures : discarded);
      if (arrivals === 'poisson') nextAt += -Math.log(1 - random()) * intervalMs;
      else if (arrivals === 'even') nextAt += intervalMs;
      else nextAt = 1000 * Math.floor((made + 1) / kind.perSecond);
    }
  }

  async #call(kind: CallKind, figures: CallFigures): Promise<void> {
    const now = this.#clock.now();
    const { deadlineMs, caller = '' } = kind;
    const deadlineAt = now + deadlineMs;
    figures.calls++;
    let ticket: Ticket;
    try {
      ticket = this.#throttle.enter(
        deadlineAt,
        { priority: 'normal', caller },
        false,
        describeEndpoint('GET', kind.path),
      );
    } catch (error) {
      figures.refusedAtOnce++;
      const { queued, inFlight } = this.#throttle.state();
      this.#refusals.push({ at: now, queued, inFlight });
      if (error instanceof SidecarError) return;
      throw error;
    }
    try {
      while ((await this.#attempt(kind, ticket, deadlineAt, figures)) === 'again');
    } catch (error) {
      if (!(error instanceof SidecarError)) throw error;
      figures.timedOut++;
    } finally {
      ticket.leave();
    }
  }

  async #attempt(kind: CallKind, ticket: Ticket, deadlineAt: number, figures: CallFigures): Promise<'again' | 'done'> {
    const permit: Permit = ticket.tryTakePermit() ?? (await ticket.waitForPermit());
    permit.markSent();
    const at = this.#clock.now();
    const { waitedMs } = ticket;
    this.#grants.push({ kind, at, remainingMs: deadlineAt - at, waitedMs });
    const latencyMs = kind.latencyMs(at, this.#random);
    const isAccepted = this.#world.limiter?.(at).accepted !== false;
    if (isAccepted && this.#isCounted(at)) this.#executed++;
    const lastsMs = isAccepted ? latencyMs : 5;
    const isCut = at + lastsMs >= deadlineAt;
    await this.#clock.sleep(isCut ? deadlineAt - at : lastsMs);
    if (!isCut) permit.report(isAccepted ? ACCEPTED : rateLimited());
    permit.release(isCut ? 'time-out' : undefined);
    if (isAccepted) figures[isCut ? 'inVain' : 'served']++;
    else if (!isCut && ticket.retryWaitMs() < deadlineAt - this.#clock.now()) return 'again';
    else figures.timedOut++;
    return 'done';
  }
}
