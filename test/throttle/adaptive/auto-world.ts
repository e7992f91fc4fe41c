/**
 * The throttle in the benchmark's simulation: Poisson arrivals against one limiter in virtual time, the same for the same seed. The
 * test chooses the throttle's settings; calls go through it as in the exchange.
 */
import type { Clock } from '../../../src/platform/clock.ts';
import { SidecarError } from '../../../src/platform/errors.ts';
import { ResponseClassifier } from '../../../src/exchange/response-classifier.ts';
import { createThrottle, type ThrottleOptions } from '../../../src/throttle/queue/queueing-throttle.ts';
import type { LearnedState, Throttle } from '../../../src/throttle/throttle.ts';
import type { Client, ClientContext, CallOutcome, Send } from '../../bench/governor/client.ts';
import { type Figures, measure } from '../../bench/governor/figures.ts';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { VirtualClock } from '../../bench/governor/virtual-clock.ts';
import { run, type RunConditions, type RunRecord } from '../../bench/governor/world.ts';

/** What a test sets; the rest has the defaults of the configuration. */
export interface Play extends Partial<Omit<RunConditions, 'limiter'>> {
  readonly limiter: LimiterRule;
  readonly seed?: number;
  readonly throttle?: Partial<ThrottleOptions['throttle']>;
  readonly restored?: LearnedState | undefined;
  /** At these instants another process takes over, with what the one before left in its state file. Default: none. */
  readonly restartsMs?: readonly number[];
  /** `throttle.share`: stated limits are divided by it. Default 1. */
  readonly share?: number;
}

/** Figures and record of the run, and the throttles at its end. */
export interface Played extends Figures {
  readonly record: RunRecord;
  readonly throttles: readonly Throttle[];
  /** At the end of the run. */
  readonly clock: Clock;
  /** Refused attempts. */
  readonly refusals: number;
  /** Permits spent, as counted from the events. */
  readonly permits: number;
  /** Before permits, all together. */
  readonly waitedMs: number;
  /** `retryAfterMs` of each call that the queue rejected at once. */
  readonly rejected: readonly number[];
}

const AUTO = { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000 } as const;

/** Default: 200 s at 1.5 times the limit without hints. */
export async function play(played: Play): Promise<Played> {
  const { limiter, seed = 1, throttle = {}, restored, restartsMs = [], share = 1, ...conditions } = played;
  const clock = new VirtualClock(conditions.startsMs);
  const throttles: Throttle[] = [];
  const rejected: number[] = [];
  let permits = 0;
  let waitedMs = 0;
  const recordPermit = (ms: number): void => {
    permits++;
    waitedMs += ms;
  };
  const createClient = ({ random }: ClientContext): Client => {
    const options = { route: 'default', clock, observe: () => undefined };
    const start = (state: LearnedState | undefined): Throttle => {
      const created = createThrottle({
        ...options,
        recordPermit,
        throttle: { ...AUTO, share, ...throttle },
        queue: { max: 1000, timeoutMs: 30_000 },
        restored: state,
        random,
      });
      throttles.push(created);
      return created;
    };
    const client = new AutoClient(start(restored), new ResponseClassifier({ ...options, replicas: share }), rejected);
    for (const at of restartsMs) clock.exactlyAt(at, () => client.restart(start));
    return client;
  };
  const record = await run({ conditions: { ...DEFAULTS, ...conditions, limiter }, seed, createClient, clock });
  return {
    ...measure(record),
    record,
    throttles,
    clock,
    rejected,
    permits,
    waitedMs,
    refusals: record.refusedAt.length,
  };
}

const DEFAULTS: Omit<RunConditions, 'limiter'> = {
  hint: 'none',
  load: 1.5,
  replicas: 1,
  durationMs: 200_000,
  startsMs: 0,
  latencyMs: { base: 20, jitter: 20 },
  serviceMs: { base: 10, jitter: 0 },
};

class AutoClient implements Client {
  #throttle: Throttle;
  readonly #classifier: ResponseClassifier;
  readonly #rejected: number[];

  constructor(throttle: Throttle, classifier: ResponseClassifier, rejected: number[]) {
    this.#throttle = throttle;
    this.#classifier = classifier;
    this.#rejected = rejected;
  }

  /** Calls that wait are given up. */
  restart(start: (state: LearnedState | undefined) => Throttle): void {
    const state = this.#throttle.snapshot();
    this.#throttle.shutDown();
    this.#throttle = start(state && (JSON.parse(JSON.stringify(state)) as LearnedState));
  }

  async call(deadlineAt: number, send: Send): Promise<CallOutcome> {
    let ticket;
    try {
      ticket = this.#throttle.enter(deadlineAt);
    } catch (error) {
      if (!(error instanceof SidecarError)) throw error;
      this.#rejected.push(error.retryAfterMs ?? NaN);
      return 'gave-up';
    }
    try {
      await ticket.waitForBodySlot();
      for (;;) {
        const permit = await ticket.waitForPermit();
        permit.markSent();
        const { status, headers } = await send();
        const { permitReport } = this.#classifier.classify({
          status,
          statusText: '',
          headers: Object.entries(headers).flat(),
        });
        permit.report(permitReport);
        permit.release();
        if (status < 300) return 'served';
        if (this.#throttle.isObserving) return 'refused-to-caller';
      }
    } catch (error) {
      if (!(error instanceof SidecarError)) throw error;
      return 'gave-up';
    } finally {
      ticket.leave();
    }
  }
}
