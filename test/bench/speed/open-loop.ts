/** Latency at a constant rate: half of what each can do at most, and half of what the sidecar can, so that both questions are answered. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { median } from './figures.ts';
import { takeTurns, withTurns, type Stage, type Turn } from './measure.ts';
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

export interface OpenLoopFigures extends OpenLoopSample {
  readonly name: string;
  readonly title: string;
  /** Requests a second, offered and not more. */
  readonly rate: number;
  /** Whose half it is. */
  readonly rateOf: string;
}

/** The one by which the common rate is set. */
const FIRST = 'sidecar';

/** GET at 64 connections. */
export function playOpenLoop(stage: Stage): Promise<OpenLoopFigures[]> {
  const scenario = SCENARIOS.find(({ name }) => name === 'get64');
  if (scenario === undefined) throw new RangeError('there is no such scenario');
  return withTurns(scenario, stage, async (turns) => {
    await takeTurns(turns, { ...stage.pace, seconds: Math.min(2, stage.pace.seconds) });
    const halves = new Map(turns.map((turn) => [turn.name, halfOf(turn)]));
    const tests = turns.flatMap((turn) =>
      [...new Set([turn.name, halves.has(FIRST) ? FIRST : turn.name])].map((rateOf) => ({
        turn,
        rateOf,
        rate: halves.get(rateOf) ?? 0,
        samples: new Array<OpenLoopSample>(),
      })),
    );
    for (let round = 0; round < stage.pace.rounds; round++)
      for (const { turn, rate, samples } of tests)
        samples.push(await offer(`${turn.url}${scenario.path}`, rate, scenario.connections, stage.pace.seconds));
    return tests.map(({ turn: { name, title }, rateOf, rate, samples }) => {
      return { name, title, rateOf, rate, ...summarize(samples) };
    });
  });
}

function halfOf(turn: Turn): number {
  return Math.round(median(turn.measured().samples.map(({ requestsPerSecond }) => requestsPerSecond)) / 2);
}

async function offer(url: string, rate: number, connections: number, seconds: number): Promise<OpenLoopSample> {
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
