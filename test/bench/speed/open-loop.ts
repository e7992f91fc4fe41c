/** Latency at a constant rate: half of what each can do at most, and half of what the sidecar can, to compare both. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { median } from './figures.ts';
import { runRounds, withProxyRuns, type BenchmarkContext, type ProxyRun } from './measure.ts';
import { CORES, searchPath } from './processes.ts';
import { SCENARIOS } from './scenarios.ts';

const run = promisify(execFile);

/** What a turn has shown. */
interface OpenLoopSample {
  readonly p50Us: number;
  readonly p99Us: number;
  readonly p999Us: number;
  readonly failed: number;
}

export interface OpenLoopSummary extends OpenLoopSample {
  readonly name: string;
  readonly title: string;
  /** Requests a second, offered and not more. */
  readonly rate: number;
  /** Whose half it is. */
  readonly rateOf: string;
}

/** The one by which the common rate is set. */
const REFERENCE = 'sidecar';

/** GET at 64 connections. */
export function runOpenLoop(stage: BenchmarkContext): Promise<OpenLoopSummary[]> {
  const scenario = SCENARIOS.find(({ name }) => name === 'get64');
  if (scenario === undefined) throw new RangeError('there is no such scenario');
  return withProxyRuns(scenario, stage, async (turns) => {
    await runRounds(turns, { ...stage.roundPlan, seconds: Math.min(2, stage.roundPlan.seconds) });
    const halves = new Map(turns.map((turn) => [turn.name, halfOfMaxRate(turn)]));
    const tests = turns.flatMap((turn) =>
      [...new Set([turn.name, halves.has(REFERENCE) ? REFERENCE : turn.name])].map((rateOf) => ({
        turn,
        rateOf,
        rate: halves.get(rateOf) ?? 0,
        samples: new Array<OpenLoopSample>(),
      })),
    );
    for (let round = 0; round < stage.roundPlan.rounds; round++)
      for (const { turn, rate, samples } of tests)
        samples.push(
          await measureAtRate(`${turn.url}${scenario.path}`, rate, scenario.connections, stage.roundPlan.seconds),
        );
    return tests.map(({ turn: { name, title }, rateOf, rate, samples }) => {
      return { name, title, rateOf, rate, ...summarize(samples) };
    });
  });
}

function halfOfMaxRate(turn: ProxyRun): number {
  return Math.round(median(turn.getMeasurement().samples.map(({ requestsPerSecond }) => requestsPerSecond)) / 2);
}

async function measureAtRate(url: string, rate: number, connections: number, seconds: number): Promise<OpenLoopSample> {
  const child = join(import.meta.dirname, 'open-loop.child.ts');
  const args = ['-c', String(CORES.client), process.execPath, child, url, rate, connections, seconds].map(String);
  const { stdout } = await run('taskset', args, { env: { PATH: searchPath() }, timeout: (seconds + 30) * 1000 });
  return JSON.parse(stdout) as OpenLoopSample;
}

function summarize(samples: readonly OpenLoopSample[]): OpenLoopSample {
  return {
    p50Us: median(samples.map(({ p50Us }) => p50Us)),
    p99Us: median(samples.map(({ p99Us }) => p99Us)),
    p999Us: median(samples.map(({ p999Us }) => p999Us)),
    failed: samples.reduce((total, { failed }) => total + failed, 0),
  };
}
