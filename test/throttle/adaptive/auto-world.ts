/**
 * The throttle in the benchmark's world: Poisson arrivals against one hidden limiter in virtual time, the same for a seed. The
 * clients are ours with settings of the test's choice, driven as the exchange drives them.
 */
import type { Clock } from '../../../src/platform/clock.ts';
import { SidecarError } from '../../../src/platform/errors.ts';
import { ResponseClassifier } from '../../../src/exchange/response-classifier.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import type { ThrottleOptions } from '../../../src/throttle/throttle-options.ts';
import type { LearnedState, Throttle } from '../../../src/throttle/throttle.ts';
import type { Client, ClientContext, CallOutcome, Send } from '../../bench/governor/client.ts';
import { type Figures, measure } from '../../bench/governor/figures.ts';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { VirtualClock } from '../../bench/governor/virtual-clock.ts';
import { run, type RunConditions, type RunRecord } from '../../bench/governor/world.ts';

/** What a test sets; the rest is as configured by default. */
export interface Play extends Partial<Omit<RunConditions, 'limiter'>> {
  readonly limiter: LimiterRule;
  readonly seed?: number;
  readonly throttle?: Partial<ThrottleOptions['throttle']>;
  readonly restored?: LearnedState | undefined;
  /** `throttle.share`: what is stated is divided by it. Default 1. */
  readonly share?: number;
}

/** Figures of the run, what happened in it, and the throttles as they are at its end. */
export interface Played extends Figures {
  readonly record: RunRecord;
  readonly throttles: readonly Throttle[];
  /** At the end of the run. */
  readonly clock: Clock;
  /** Attempts refused, in all. */
  readonly refusals: number;
  /** Permits that the throttles say were spent. */
  readonly permits: number;
  /** Calls turned away at the door, and what Retry-After was to be, milliseconds. */
  readonly turnedAway: readonly number[];
}

const AUTO = { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000 } as const;

/** Plays 200 s at 1.5 times the limit without hints, unless told otherwise. */
export async function play(played: Play): Promise<Played> {
  const { limiter, seed = 1, throttle = {}, restored, share = 1, ...conditions } = played;
  const clock = new VirtualClock(conditions.startsMs);
  const throttles: Throttle[] = [];
  const turnedAway: number[] = [];
  let permits = 0;
  const observe = (event: SidecarEvent): void => {
    if (event.kind === 'permit-granted') permits++;
  };
  const createClient = ({ random }: ClientContext): Client => {
    const options = { route: 'default', clock, observe };
    const created = createThrottle({
      ...options,
      throttle: { ...AUTO, ...throttle },
      queue: { max: 1000, timeoutMs: 30_000 },
      restored,
      random,
    });
    throttles.push(created);
    return new AutoClient(created, new ResponseClassifier({ ...options, replicas: share }), turnedAway);
  };
  const record = await run({ conditions: { ...DEFAULTS, ...conditions, limiter }, seed, createClient, clock });
  return { ...measure(record), record, throttles, clock, turnedAway, permits, refusals: record.refusedAt.length };
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
  readonly #throttle: Throttle;
  readonly #signals: ResponseClassifier;
  readonly #turnedAway: number[];

  constructor(throttle: Throttle, signals: ResponseClassifier, turnedAway: number[]) {
    this.#throttle = throttle;
    this.#signals = signals;
    this.#turnedAway = turnedAway;
  }

  async call(deadlineAt: number, send: Send): Promise<CallOutcome> {
    let ticket;
    try {
      ticket = this.#throttle.enter(deadlineAt);
    } catch (error) {
      if (!(error instanceof SidecarError)) throw error;
      this.#turnedAway.push(error.retryAfterMs ?? NaN);
      return 'gave-up';
    }
    try {
      await ticket.waitForAdmission();
      for (;;) {
        const permit = await ticket.waitForPermit();
        permit.markSent();
        const { status, headers } = await send();
        const { permitReport } = this.#signals.classify({
          status,
          statusText: '',
          headers: Object.entries(headers).flat(),
        });
        permit.report(permitReport);
        permit.release();
        if (status < 300) return 'served';
      }
    } catch (error) {
      if (!(error instanceof SidecarError)) throw error;
      return 'gave-up';
    } finally {
      ticket.leave();
    }
  }
}
