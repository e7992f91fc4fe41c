/** Plays one scenario: every proxy is started afresh, warmed up, and then all take turns, round by round. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BodyVerifier } from './comparison.ts';
import { cpuSecondsOf, memoryOf } from './processes.ts';
import type { Scenario } from './scenarios.ts';
import type { SubjectStartOptions, RunningSubject, BenchmarkSubject } from './subjects.ts';
import type { BenchmarkUpstream } from './upstream.ts';
import { runWrk, type WrkResult } from './wrk.ts';

/** One turn of one proxy. */
export interface Sample {
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** User and system time of the proxy for one request, microseconds. NaN for none at all. */
  readonly cpuUs: number;
  readonly failed: number;
}

export interface ProxyMeasurement {
  readonly name: string;
  readonly title: string;
  /** In the order of the starts and, within each, of the rounds. */
  readonly samples: readonly Sample[];
  readonly startMs: number;
  /** Before the first request under load, and the most until the end; bytes. */
  readonly idleBytes: number;
  readonly peakBytes: number;
}

export interface RoundPlan {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
}

/** No proxy at all: the client asks the upstream. */
export const DIRECT = 'direct';

const SETTLE_MS = 500;

/** What a scenario is played with. */
export interface BenchmarkContext {
  readonly subjects: readonly BenchmarkSubject[];
  readonly upstream: BenchmarkUpstream;
  /** Compares bodies while a turn lasts. */
  readonly bodyVerifier: BodyVerifier;
  readonly startOptions: Omit<SubjectStartOptions, 'upstreamUrl' | 'caFile'>;
  readonly roundPlan: RoundPlan;
  /** Is called with the name of each that cannot be started, and why. */
  readonly onStartFailed: (name: string, fault: Error) => void;
}

/** As fast as they can, started afresh several times: V8 compiles differently from start to start. @returns a measurement of each in each start */
export async function runStarts(
  scenario: Scenario,
  stage: BenchmarkContext,
  starts: number,
): Promise<ProxyMeasurement[]> {
  const all: ProxyMeasurement[] = [];
  for (let start = 0; start < starts; start++)
    await withProxyRuns(scenario, stage, async (turns) => {
      await runRounds(turns, stage.roundPlan);
      all.push(...turns.map((turn) => turn.getMeasurement()));
    });
  return all;
}

/** Each round begins with the next of them. */
async function runRounds(turns: readonly ProxyRun[], { rounds, seconds }: RoundPlan): Promise<void> {
  for (let round = 0; round < rounds; round++)
    for (let at = 0; at < turns.length; at++) await turns[(at + round) % turns.length]?.takeSample(seconds);
}

/** Starts all afresh, warms them up, hands them over, and ends them. */
export async function withProxyRuns<T>(
  scenario: Scenario,
  { subjects, upstream, bodyVerifier, startOptions, roundPlan, onStartFailed }: BenchmarkContext,
  use: (turns: readonly ProxyRun[]) => Promise<T>,
): Promise<T> {
  const upstreamUrl = scenario.isTls ? upstream.tlsUrl : upstream.plainUrl;
  const turns: ProxyRun[] = [new ProxyRun(DIRECT, 'no proxy', undefined, upstreamUrl, scenario, bodyVerifier)];
  try {
    for (const subject of subjects) {
      try {
        const running = await subject.start({ ...startOptions, upstreamUrl, caFile: upstream.caFile });
        turns.push(new ProxyRun(subject.name, subject.title, running, running.url, scenario, bodyVerifier));
      } catch (error) {
        onStartFailed(subject.name, error as Error);
      }
    }
    await sleep(SETTLE_MS);
    for (const turn of turns) await turn.warmUp(roundPlan.warmUpSeconds);
    return await use(turns);
  } finally {
    await Promise.all(turns.map((turn) => turn.stop()));
  }
}

/** One proxy, or none, in one scenario. */
export class ProxyRun {
  readonly name: string;
  readonly title: string;
  /** Requests go here. */
  readonly url: string;
  readonly #running: RunningSubject | undefined;
  readonly #scenario: Scenario;
  readonly #comparison: BodyVerifier;
  readonly #samples: Sample[] = [];
  #idleBytes = NaN;

  constructor(
    name: string,
    title: string,
    running: RunningSubject | undefined,
    url: string,
    scenario: Scenario,
    comparison: BodyVerifier,
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

  async takeSample(seconds: number): Promise<void> {
    this.#running?.truncateLog();
    const pids = this.#running?.pids() ?? [];
    const before = cpuSecondsOf(pids);
    const run = (): Promise<WrkResult> => runWrk(this.url, this.#scenario, seconds);
    // The upstream's certificate is for proxies to check: without one in between nothing can alter a body.
    const isCompared = this.#running !== undefined;
    const figures = await (isCompared ? this.#comparison.verifyDuring(this.name, this.url, run) : run());
    const { requests, durationUs, p50Us, p99Us, failed } = figures;
    const cpuUs = pids.length === 0 ? NaN : ((cpuSecondsOf(pids) - before) * 1e6) / requests;
    this.#samples.push({ requestsPerSecond: (requests * 1e6) / durationUs, p50Us, p99Us, cpuUs, failed });
  }

  getMeasurement(): ProxyMeasurement {
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
