/** Plays one scenario: every proxy is started afresh, warmed up, and then all take turns, round by round. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Comparison } from './comparison.ts';
import { cpuSecondsOf, memoryOf } from './processes.ts';
import type { Scenario } from './scenarios.ts';
import type { Place, Running, Subject } from './subjects.ts';
import type { Upstream } from './upstream.ts';
import { runWrk, type WrkFigures } from './wrk.ts';

/** One turn of one proxy. */
export interface Sample {
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** User and system time of the proxy for one request, microseconds. NaN for none at all. */
  readonly cpuUs: number;
  readonly failed: number;
}

export interface Measured {
  readonly name: string;
  readonly title: string;
  /** In the order of the rounds. */
  readonly samples: readonly Sample[];
  readonly startMs: number;
  /** Before the first request under load, and the most until the end; bytes. */
  readonly idleBytes: number;
  readonly peakBytes: number;
}

export interface Pace {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
}

/** No proxy at all: the client asks the upstream. */
export const DIRECT = 'direct';

const SETTLE_MS = 500;

/** What a scenario is played with. */
export interface Stage {
  readonly subjects: readonly Subject[];
  readonly upstream: Upstream;
  /** Compares bodies while a turn lasts. */
  readonly comparison: Comparison;
  readonly place: Omit<Place, 'upstreamUrl' | 'caFile'>;
  readonly pace: Pace;
  /** Is called with the name of each that cannot be started, and why. */
  readonly tell: (name: string, fault: Error) => void;
}

/** As fast as they can. */
export function play(scenario: Scenario, stage: Stage): Promise<Measured[]> {
  return withTurns(scenario, stage, async (turns) => {
    await takeTurns(turns, stage.pace);
    return turns.map((turn) => turn.measured());
  });
}

/** Each round begins with the next of them. */
export async function takeTurns(turns: readonly Turn[], { rounds, seconds }: Pace): Promise<void> {
  for (let round = 0; round < rounds; round++)
    for (let at = 0; at < turns.length; at++) await turns[(at + round) % turns.length]?.take(seconds);
}

/** Starts all afresh, warms them up, hands them over, and ends them. */
export async function withTurns<T>(
  scenario: Scenario,
  { subjects, upstream, comparison, place, pace, tell }: Stage,
  use: (turns: readonly Turn[]) => Promise<T>,
): Promise<T> {
  const upstreamUrl = scenario.isTls ? upstream.tlsUrl : upstream.plainUrl;
  const turns: Turn[] = [new Turn(DIRECT, 'no proxy', undefined, upstreamUrl, scenario, comparison)];
  try {
    for (const subject of subjects) {
      try {
        const running = await subject.start({ ...place, upstreamUrl, caFile: upstream.caFile });
        turns.push(new Turn(subject.name, subject.title, running, running.url, scenario, comparison));
      } catch (error) {
        tell(subject.name, error as Error);
      }
    }
    await sleep(SETTLE_MS);
    for (const turn of turns) await turn.warmUp(pace.warmUpSeconds);
    return await use(turns);
  } finally {
    await Promise.all(turns.map((turn) => turn.stop()));
  }
}

/** One proxy, or none, in one scenario. */
export class Turn {
  readonly name: string;
  readonly title: string;
  /** Requests go here. */
  readonly url: string;
  readonly #running: Running | undefined;
  readonly #scenario: Scenario;
  readonly #comparison: Comparison;
  readonly #samples: Sample[] = [];
  #idleBytes = NaN;

  constructor(
    name: string,
    title: string,
    running: Running | undefined,
    url: string,
    scenario: Scenario,
    comparison: Comparison,
  ) {
    this.name = name;
    this.title = title;
    this.#running = running;
    this.url = url;
    this.#scenario = scenario;
    this.#comparison = comparison;
  }

  async warmUp(seconds: number): Promise<void> {
    if (this.#running !== undefined) this.#idleBytes = memoryOf(this.#running.pids(), 'VmRSS');
    if (seconds > 0) await runWrk(this.url, this.#scenario, seconds);
  }

  async take(seconds: number): Promise<void> {
    this.#running?.tidy();
    const pids = this.#running?.pids() ?? [];
    const before = cpuSecondsOf(pids);
    const run = (): Promise<WrkFigures> => runWrk(this.url, this.#scenario, seconds);
    // The upstream's certificate is for proxies to check: without one in between nothing can alter a body.
    const isCompared = this.#running !== undefined;
    const figures = await (isCompared ? this.#comparison.beside(this.name, this.url, run) : run());
    const { requests, durationUs, p50Us, p99Us, failed } = figures;
    const cpuUs = pids.length === 0 ? NaN : ((cpuSecondsOf(pids) - before) * 1e6) / requests;
    this.#samples.push({ requestsPerSecond: (requests * 1e6) / durationUs, p50Us, p99Us, cpuUs, failed });
  }

  measured(): Measured {
    const running = this.#running;
    return {
      name: this.name,
      title: this.title,
      samples: this.#samples,
      startMs: running?.startMs ?? NaN,
      idleBytes: this.#idleBytes,
      peakBytes: running === undefined ? NaN : memoryOf(running.pids(), 'VmHWM'),
    };
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
  }
}
