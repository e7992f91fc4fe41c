/**
 * One run in virtual time: arrivals are distributed to the replicas, attempts travel to the one server and back, and everything is
 * recorded with its instant. figures.ts computes the figures from the record.
 */
import type { Random } from '../../../src/platform/clock.ts';
import {
  CallerGone,
  type SimulatedResponse,
  type Client,
  type CreateClient,
  DEADLINE_MS,
  type Send,
} from './client.ts';
import type { HintStyle } from './hints.ts';
import { create, type Limiter, type LimiterRule } from './limiters.ts';
import { createArrivals, isClosed, type LoadSpec, thinkTimeMs } from './load.ts';
import { countPossible } from './possible.ts';
import { createRandom } from './seeded.ts';
import { VirtualClock } from './virtual-clock.ts';

/** `base` milliseconds, and up to `jitter` more at random. */
export interface Spread {
  readonly base: number;
  readonly jitter: number;
}

/** Everything that defines a run, except the client and the seed. */
export interface RunConditions {
  readonly limiter: LimiterRule;
  readonly status?: number;
  readonly hint: HintStyle;
  readonly load: LoadSpec;
  readonly replicas: number;
  readonly durationMs: number;
  /** The time of day at the start, by our clock. */
  readonly startsMs: number;
  /** One way. */
  readonly latencyMs: Spread;
  /** At the server, for accepted calls. */
  readonly serviceMs: Spread;
  /** At the server, for refused calls. Default: they leave at once. */
  readonly refusalMs?: Spread;
  /** Share of the calls within the limit that are refused all the same, and not counted. Default 0. */
  readonly spuriousShare?: number;
}

/** The record of a run. Instants in milliseconds since the start, in order. */
export interface RunRecord {
  readonly conditions: RunConditions;
  readonly limiter: Limiter;
  readonly arrivals: readonly number[];
  /** Calls that a client with full knowledge would get accepted within the run (possible.ts); NaN for a closed loop, whose calls depend on the client. */
  readonly possible: number;
  /** When accepted and refused attempts reached the server. */
  readonly acceptedAt: readonly number[];
  readonly refusedAt: readonly number[];
  /** Accepted calls whose caller no longer waited. */
  readonly wasted: number;
  /** From arrival to the send of the attempt that was accepted; one per served call. */
  readonly waitsMs: readonly number[];
  /** Served calls of each replica. */
  readonly servedBy: readonly number[];
  readonly refusedToCaller: number;
  readonly gaveUp: number;
  /** In order of arrival. */
  readonly calls: readonly CallRecord[];
}

/** What became of one call of the application. */
export interface CallRecord {
  readonly arrivedAt: number;
  /** When it reached the server and was accepted; undefined when it never was. */
  readonly acceptedAt: number | undefined;
  /** When its caller had an outcome; Infinity while it has none. */
  readonly endedAt: number;
  readonly isServed: boolean;
}

/** Called at intervals during the run. */
export interface Tracing {
  readonly everyMs: number;
  readonly report: (at: number, client: Client, accepted: number, refused: number) => void;
}

export interface RunOptions {
  readonly conditions: RunConditions;
  readonly seed: number;
  readonly createClient: CreateClient;
  readonly tracing?: Tracing | undefined;
  /** Given when the virtual globals use it. Default: a new clock. */
  readonly clock?: VirtualClock;
}

/**
 * Runs until the last caller has a response or has given up.
 * @throws Error when a client fails, or reports a refused call as served
 */
export async function run(options: RunOptions): Promise<RunRecord> {
  return new World(options).run();
}

class World {
  readonly #options: RunOptions;
  readonly #conditions: RunConditions;
  readonly #clock: VirtualClock;
  readonly #limiter: Limiter;
  readonly #network: Random;
  readonly #service: Random;
  readonly #clients: readonly Client[];
  /** Of a closed loop the first call of each client. */
  readonly #arrivals: readonly number[];
  readonly #calls: Call[] = [];
  readonly #think: Random;
  readonly #countsInFlight: boolean;
  readonly #acceptedAt: number[] = [];
  readonly #refusedAt: number[] = [];
  readonly #waitsMs: number[] = [];
  readonly #servedBy: number[];
  readonly #faults: unknown[] = [];
  #inFlight = 0;
  #wasted = 0;
  #refusedToCaller = 0;
  #gaveUp = 0;

  constructor(options: RunOptions) {
    const { conditions, seed, createClient } = options;
    const { durationMs, load, replicas } = conditions;
    this.#options = options;
    this.#conditions = conditions;
    this.#clock = options.clock ?? new VirtualClock(conditions.startsMs);
    this.#limiter = createLimiter(conditions, createRandom(seed, 'spurious'));
    this.#think = createRandom(seed, 'think');
    this.#network = createRandom(seed, 'network');
    this.#service = createRandom(seed, 'service');
    this.#countsInFlight = this.#limiter.model.nextAt(0, Infinity) === Infinity;
    this.#arrivals = createArrivals(load, this.#limiter.model, durationMs, createRandom(seed, 'arrivals'));
    this.#servedBy = Array.from({ length: replicas }, () => 0);
    this.#clients = this.#servedBy.map((_, replica) =>
      createClient({
        clock: this.#clock,
        random: createRandom(seed, `replica ${replica}`),
        replicas,
        limiter: conditions.limiter,
        perSecond: this.#limiter.model.rateAt(0) * 1000,
      }),
    );
  }

  async run(): Promise<RunRecord> {
    const { durationMs, serviceMs, load } = this.#conditions;
    const { seed } = this.#options;
    const reference = createLimiter(this.#conditions).model;
    const serviceTime = (random: Random): number => drawFrom(serviceMs, random);
    const chance = createRandom(seed, 'service');
    const possible = isClosed(load) ? NaN : countPossible(reference, this.#arrivals, durationMs, serviceTime, chance);
    this.#scheduleArrivals(createRandom(seed, 'replica of a call'));
    this.#scheduleTraces();
    await this.#clock.runUntil(durationMs + DEADLINE_MS + 1000);
    if (this.#faults.length > 0) throw new Error('a client failed', { cause: this.#faults[0] });
    return {
      conditions: this.#conditions,
      limiter: this.#limiter,
      arrivals: this.#calls.map(({ arrivedAt }) => arrivedAt),
      possible,
      acceptedAt: this.#acceptedAt,
      refusedAt: this.#refusedAt,
      wasted: this.#wasted,
      waitsMs: this.#waitsMs,
      servedBy: this.#servedBy,
      refusedToCaller: this.#refusedToCaller,
      gaveUp: this.#gaveUp,
      calls: this.#calls,
    };
  }

  #scheduleArrivals(random: Random): void {
    const arrivals = this.#arrivals;
    let next = 0;
    const arrive = (): void => {
      const replica = Math.floor(random() * this.#clients.length);
      this.#begin(replica);
      next++;
      const at = arrivals[next];
      if (at !== undefined) this.#clock.exactlyAt(at, arrive);
    };
    if (arrivals[0] !== undefined) this.#clock.exactlyAt(arrivals[0], arrive);
  }

  #scheduleTraces(): void {
    const { tracing } = this.#options;
    const client = this.#clients[0];
    if (tracing === undefined || client === undefined) return;
    const report = (at: number): void => {
      tracing.report(at, client, this.#acceptedAt.length, this.#refusedAt.length);
      if (at < this.#conditions.durationMs)
        this.#clock.runWithoutSettlingAt(at + tracing.everyMs, () => report(at + tracing.everyMs));
    };
    this.#clock.runWithoutSettlingAt(0, () => report(0));
  }

  /** The application makes a call. */
  #begin(replica: number): void {
    const client = this.#clients[replica];
    if (client === undefined) throw new RangeError(`there is no replica ${replica}`);
    const now = this.#clock.now();
    const call = new Call(now, now + DEADLINE_MS);
    this.#calls.push(call);
    const send: Send = () => this.#send(call);
    const end = (outcome: 'served' | 'refused-to-caller' | 'gave-up'): void => {
      this.#end(call, replica, outcome);
    };
    client
      .call(call.deadlineAt, send)
      .catch((error: unknown): 'gave-up' => {
        if (error instanceof CallerGone) return 'gave-up';
        throw error;
      })
      .then(end)
      .catch((error: unknown) => {
        this.#faults.push(error);
      });
  }

  #end(call: Call, replica: number, outcome: 'served' | 'refused-to-caller' | 'gave-up'): void {
    const now = this.#clock.now();
    call.endedAt = now;
    this.#beginNext(now);
    if (call.isOverdue(now) || outcome === 'gave-up') {
      this.#gaveUp++;
      if (call.acceptedSentAt !== undefined) this.#wasted++;
    } else if (outcome === 'refused-to-caller') {
      this.#refusedToCaller++;
    } else if (call.acceptedSentAt === undefined) {
      throw new Error('a client calls a call served that the server has not accepted');
    } else {
      call.isServed = true;
      this.#servedBy[replica] = (this.#servedBy[replica] ?? 0) + 1;
      this.#waitsMs.push(call.acceptedSentAt - call.arrivedAt);
    }
  }

  /** In a closed loop the client of a call that has ended makes another. */
  #beginNext(now: number): void {
    const { load, durationMs, replicas } = this.#conditions;
    if (!isClosed(load)) return;
    const at = now + thinkTimeMs(load, this.#think);
    if (at < durationMs) this.#clock.exactlyAt(at, () => this.#begin(Math.floor(this.#think() * replicas)));
  }

  #send(call: Call): Promise<SimulatedResponse> {
    const sentAt = this.#clock.now();
    if (call.isOverdue(sentAt)) return Promise.reject(new CallerGone());
    return new Promise((resolve) => {
      this.#clock.runWithoutSettlingAt(sentAt + this.#networkDelayMs(), () => this.#receive(call, sentAt, resolve));
    });
  }

  /** The attempt reaches the server. */
  #receive(call: Call, sentAt: number, resolve: (response: SimulatedResponse) => void): void {
    const at = this.#clock.now();
    const response = this.#limiter.evaluate(at, this.#inFlight);
    let leavesAt = at;
    if (response.accepted) {
      this.#acceptedAt.push(at);
      call.acceptedSentAt = sentAt;
      call.acceptedAt = at;
      leavesAt += (response.heldMs ?? 0) + drawFrom(this.#conditions.serviceMs, this.#service);
      if (this.#countsInFlight) {
        this.#inFlight++;
        this.#clock.runWithoutSettlingAt(leavesAt, () => this.#inFlight--);
      }
    } else {
      this.#refusedAt.push(at);
      const { refusalMs } = this.#conditions;
      if (refusalMs !== undefined) leavesAt += drawFrom(refusalMs, this.#service);
    }
    this.#clock.exactlyAt(leavesAt + this.#networkDelayMs(), () => resolve(response));
  }

  #networkDelayMs(): number {
    return drawFrom(this.#conditions.latencyMs, this.#network);
  }
}

/** One call of the application. */
class Call implements CallRecord {
  readonly arrivedAt: number;
  readonly deadlineAt: number;
  acceptedSentAt: number | undefined;
  acceptedAt: number | undefined;
  endedAt = Infinity;
  isServed = false;

  constructor(arrivedAt: number, deadlineAt: number) {
    this.arrivedAt = arrivedAt;
    this.deadlineAt = deadlineAt;
  }

  isOverdue(now: number): boolean {
    return now >= this.deadlineAt;
  }
}

/** @param spurious decides which calls are refused at random. Default: none */
export function createLimiter(conditions: RunConditions, spurious?: Random): Limiter {
  const { limiter, status, hint, serviceMs, startsMs, spuriousShare = 0 } = conditions;
  const meanServiceMs = serviceMs.base + serviceMs.jitter / 2;
  return create({
    limiter,
    hint,
    meanServiceMs,
    startsMs,
    ...(status === undefined ? {} : { status }),
    ...(spurious === undefined || spuriousShare === 0 ? {} : { refusesAtRandom: () => spurious() < spuriousShare }),
  });
}

function drawFrom({ base, jitter }: Spread, random: Random): number {
  return base + random() * jitter;
}
