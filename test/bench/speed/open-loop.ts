/** Latency at constant rates, the same for all, that none of them needs much of its core for. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { median } from './figures.ts';
import { withProxyRuns, type BenchmarkContext } from './measure.ts';
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
}

const RATES = [1000, 5000];

/** GET at 64 connections. */
export function runOpenLoop(stage: BenchmarkContext): Promise<OpenLoopSummary[]> {
  const scenario = SCENARIOS.find(({ name }) => name === 'get64');
  if (scenario === undefined) throw new RangeError('there is no such scenario');
  return withProxyRuns(scenario, stage, async (turns) => {
    const tests = RATES.flatMap((rate) => turns.map((turn) => ({ turn, rate, samples: new Array<OpenLoopSample>() })));
    for (let round = 0; round < stage.roundPlan.rounds; round++)
      for (const { turn, rate, samples } of tests)
        samples.push(
          await measureAtRate(`${turn.url}${scenario.path}`, rate, scenario.connections, stage.roundPlan.seconds),
        );
    return tests.map(({ turn: { name, title }, rate, samples }) => ({ name, title, rate, ...summarize(samples) }));
  });
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
