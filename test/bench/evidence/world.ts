/**
 * An application's calls in virtual time, through the throttle to a simulated upstream and back. Calls that fail are repeated as the retry
 * policy does. Deterministic for a seed.
 */
import { SidecarError } from '../../../src/platform/errors.ts';
import type { Random } from '../../../src/platform/clock.ts';
import type { SuspectStatus } from '../../../src/telemetry/events.ts';
import { describeEndpoint } from '../../../src/throttle/endpoint.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import type { PermitReport, Throttle } from '../../../src/throttle/throttle.ts';
import { createRandom } from '../governor/seeded.ts';
import { VirtualClock } from '../governor/virtual-clock.ts';

/** One call of the application. */
export interface Call {
  readonly method: string;
  readonly path: string;
}

/** How the upstream treats one attempt. `fault`: no response. A number is a bare status. */
export interface UpstreamReply {
  readonly sign: 'accepted' | 'fault' | SuspectStatus;
  readonly serviceMs: number;
}

/** @param inFlight attempts that the upstream works on */
export type Upstream = (at: number, call: Call, inFlight: number) => UpstreamReply;

/** `open`: instants of the calls. `closed`: so many workers, each with one call at a time. */
export type Load =
  | { readonly kind: 'open'; readonly arrivals: (random: Random, durationMs: number) => readonly number[] }
  | { readonly kind: 'closed'; readonly workers: number; readonly thinkMs: number };

/** One kind of run. */
export interface Case {
  readonly name: string;
  readonly load: Load;
  readonly upstream: (random: Random) => Upstream;
  /** Default: GET of one of many resources under one path. */
  readonly call?: (at: number, random: Random) => Call;
  readonly durationMs: number;
  /** Retries of failed calls after a backoff. Default 0: the calls are not idempotent. */
  readonly retries?: number;
  /** The application itself calls again so soon after a failed call, at most this many times. Default: it does not. */
  readonly repeats?: { readonly times: number; readonly afterMs: number };
}

export interface RunFigures {
  /** Attempts. */
  readonly sent: number;
  readonly refused: number;
  /** Calls that got no permit. */
  readonly rejected: number;
  /** Refusals that were taken for a limit's. */
  readonly assumed: number;
  /** Time in which at least one call waited for a permit. */
  readonly delayedMs: number;
  /** Waits of all calls together. */
  readonly waitedMs: number;
  readonly longestWaitMs: number;
}

const NETWORK_MS = { base: 2, jitter: 3 };
const LONGEST_BACKOFF_MS = 250;
const DEADLINE_MS = 60_000;
const DEFAULT_CALL: Call = { method: 'GET', path: '/quotes/1' };
const NO_REPEATS = { times: 0, afterMs: 0 };
/** Shorter waits are those for a slot in flight. */
const LEAST_WAIT_MS = 5;

/** @param assumeRefusals `throttle.assumeRefusals` */
export async function runCase(one: Case, seed: number, assumeRefusals: boolean): Promise<RunFigures> {
  const world = new World(one, seed, assumeRefusals);
  await world.run();
  return world.figures;
}

class World {
  readonly #case: Case;
  readonly #clock = new VirtualClock();
  readonly #throttle: Throttle;
  readonly #upstream: Upstream;
  readonly #network: Random;
  readonly #calls: Random;
  readonly #arrivals: Random;
  #inFlight = 0;
  #delayedUntil = 0;
  readonly figures = {
    sent: 0,
    refused: 0,
    rejected: 0,
    assumed: 0,
    delayedMs: 0,
    waitedMs: 0,
    longestWaitMs: 0,
  };

  constructor(one: Case, seed: number, assumeRefusals: boolean) {
    this.#case = one;
    this.#network = createRandom(seed, 'network');
    this.#calls = createRandom(seed, 'calls');
    this.#arrivals = createRandom(seed, 'arrivals');
    this.#upstream = one.upstream(createRandom(seed, 'upstream'));
    this.#throttle = createThrottle({
      route: 'default',
      throttle: { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000, assumeRefusals },
      queue: { max: 1000, timeoutMs: 30_000 },
      clock: this.#clock,
      random: createRandom(seed, 'throttle'),
      observe: ({ kind }) => {
        if (kind === 'assumed-refusal') this.figures.assumed++;
      },
    });
  }

  async run(): Promise<void> {
    const { load, durationMs } = this.#case;
    if (load.kind === 'open') {
      for (const at of load.arrivals(this.#arrivals, durationMs)) this.#clock.exactlyAt(at, () => void this.#ask());
    } else {
      for (let worker = 0; worker < load.workers; worker++) void this.#work(worker, load.thinkMs);
    }
    await this.#clock.runUntil(durationMs);
  }

  async #work(startAt: number, thinkMs: number): Promise<void> {
    await this.#clock.sleepUntil(startAt);
    for (;;) {
      await this.#ask();
      await this.#sleep(thinkMs * (0.5 + this.#calls()));
    }
  }

  async #ask(): Promise<void> {
    const { call = () => DEFAULT_CALL, repeats = NO_REPEATS } = this.#case;
    const made = call(this.#clock.now(), this.#calls);
    for (let left = repeats.times; !(await this.#callOnce(made)) && left > 0; left--)
      await this.#sleep(repeats.afterMs * (0.5 + this.#calls()));
  }

  /** @returns whether it was accepted */
  async #callOnce(call: Call): Promise<boolean> {
    const { retries = 0 } = this.#case;
    const arrivedAt = this.#clock.now();
    const endpoint = describeEndpoint(call.method, call.path);
    const ticket = this.#throttle.enter(arrivedAt + DEADLINE_MS, undefined, false, endpoint);
    try {
      for (let retry = 0; ; retry++) {
        const requestedAt = this.#clock.now();
        const permit = await ticket.waitForPermit();
        this.#recordWait(requestedAt, this.#clock.now());
        permit.markSent();
        const sign = await this.#send(call);
        permit.report(reportOf(sign));
        permit.release();
        if (sign === 'accepted' || retry === retries) return sign === 'accepted';
        await this.#sleep(this.#calls() * LONGEST_BACKOFF_MS * 2 ** retry);
      }
    } catch (error) {
      if (!(error instanceof SidecarError)) throw error;
      this.figures.rejected++;
      return false;
    } finally {
      ticket.leave();
    }
  }

  async #send(call: Call): Promise<UpstreamReply['sign']> {
    this.figures.sent++;
    await this.#travel();
    const { sign, serviceMs } = this.#upstream(this.#clock.now(), call, this.#inFlight);
    this.#inFlight++;
    await this.#sleep(serviceMs);
    this.#inFlight--;
    await this.#travel();
    if (typeof sign === 'number') this.figures.refused++;
    return sign;
  }

  #recordWait(from: number, to: number): void {
    if (to - from < LEAST_WAIT_MS) return;
    this.figures.waitedMs += to - from;
    this.figures.longestWaitMs = Math.max(this.figures.longestWaitMs, to - from);
    this.figures.delayedMs += Math.max(0, to - Math.max(from, this.#delayedUntil));
    this.#delayedUntil = Math.max(this.#delayedUntil, to);
  }

  #travel(): Promise<void> {
    return this.#sleep(NETWORK_MS.base + this.#network() * NETWORK_MS.jitter);
  }

  #sleep(ms: number): Promise<void> {
    return this.#clock.sleepUntil(this.#clock.now() + ms);
  }
}

function reportOf(sign: UpstreamReply['sign']): PermitReport {
  if (typeof sign === 'number') return { kind: 'suspect', status: sign };
  return { kind: sign === 'accepted' ? 'accepted' : 'unknown' };
}
