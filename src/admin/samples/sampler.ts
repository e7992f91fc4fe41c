/** Takes a sample once a second, for the ring and for those who draw it. */
import type { Cancel, Clock } from '../../platform/clock.ts';
import { SampleRing, type Samples } from './sample-ring.ts';
import type { SampleSource } from './samples.ts';

const SAMPLE_INTERVAL_MS = 1000;
/** The columns of a sidecar with one route need about half of the sum; twenty routes get 1.5 MiB. */
const BASE_BYTES = 256 * 1024;
const BYTES_PER_ROUTE = 64 * 1024;

export type RunEverySecond = (run: () => void) => Cancel;

export interface SamplerOptions {
  readonly clock: Pick<Clock, 'now'>;
  readonly source: SampleSource;
  /** How many routes are configured, for the bound of the memory. Default 1. */
  readonly routes?: number;
  /** Default: a timer that does not keep the process alive. */
  readonly runEverySecond?: RunEverySecond;
}

export class Sampler {
  readonly ring: SampleRing;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #runEverySecond: RunEverySecond;
  readonly #listeners = new Set<() => void>();
  #cancel: Cancel = () => undefined;

  constructor({ clock, source, routes = 1, runEverySecond = runOnUnrefedTimer }: SamplerOptions) {
    this.#clock = clock;
    this.#runEverySecond = runEverySecond;
    this.ring = new SampleRing(source, BASE_BYTES + routes * BYTES_PER_ROUTE);
  }

  read(): Samples {
    return this.ring.read(this.#clock.now());
  }

  /** Calls back after each sample, until cancelled. */
  subscribe(listener: () => void): Cancel {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Takes the first sample at once. */
  start(): void {
    this.ring.sample(this.#clock.now());
    this.#cancel = this.#runEverySecond(() => {
      this.ring.sample(this.#clock.now());
      for (const listener of this.#listeners) listener();
    });
  }

  stop(): void {
    this.#cancel();
    this.#listeners.clear();
  }
}

/** After a stall there is one sample for the missed seconds. */
const runOnUnrefedTimer: RunEverySecond = (run) => {
  const timer = setInterval(run, SAMPLE_INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
};
