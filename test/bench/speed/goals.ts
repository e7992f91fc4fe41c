/** What the sidecar is to reach, and whether it has: ratios and bounds from the figures of one run. */
import { median, type ProxySummary } from './figures.ts';
import type { OpenLoopSummary } from './open-loop.ts';

export interface ScenarioResult {
  readonly scenario: string;
  readonly title: string;
  readonly figures: readonly ProxySummary[];
}

export interface Results {
  readonly played: readonly ScenarioResult[];
  readonly openLoop: readonly OpenLoopSummary[];
}

/** Before the load, the median of all scenarios: each has started everything afresh. */
export interface StartSummary {
  readonly name: string;
  readonly title: string;
  readonly startMs: number;
  readonly idleBytes: number;
}

export function summarizeStarts(played: readonly ScenarioResult[]): StartSummary[] {
  const all = played.flatMap(({ figures }) => figures).filter(({ startMs }) => !Number.isNaN(startMs));
  return [...Map.groupBy(all, ({ name }) => name)].map(([name, starts]) => ({
    name,
    title: starts[0]?.title ?? name,
    startMs: median(starts.map(({ startMs }) => startMs)),
    idleBytes: median(starts.map(({ idleBytes }) => idleBytes)),
  }));
}

export interface GoalResult {
  readonly what: string;
  readonly value: string;
  readonly goal: string;
  /** Undefined where nothing is asked. */
  readonly isReached: boolean | undefined;
}

const MIB = 1024 * 1024;
const NODE_PEERS = ['http-proxy-3', 'fastify-http-proxy', 'fast-proxy', 'httpxy'];

/** Leaves out what was not measured. */
export function evaluateGoals({ played, openLoop }: Results): GoalResult[] {
  const of = (scenario: string, name: string): ProxySummary | undefined =>
    played.find((one) => one.scenario === scenario)?.figures.find((figures) => figures.name === name);
  const speed = (scenario: string, name: string): number => of(scenario, name)?.requestsPerSecond ?? NaN;
  const fastestPeer = (scenario: string): number => {
    const speeds = NODE_PEERS.map((name) => speed(scenario, name)).filter((value) => !Number.isNaN(value));
    return speeds.length === 0 ? NaN : Math.max(...speeds);
  };
  const openLoopRatio = (rate: number, field: 'p99Us' | 'p999Us'): number => {
    const figure = (name: string): number =>
      openLoop.find((one) => one.name === name && one.rate === rate)?.[field] ?? NaN;
    return figure('sidecar') / figure('bare');
  };
  const start = summarizeStarts(played).find(({ name }) => name === 'sidecar');
  const verdicts = [
    ...[['get64', 0.76] as const, ['post64', 0.7] as const].flatMap(([scenario, least]) => [
      atLeast(`${scenario}: throughput, of the bare pass-through's`, of(scenario, 'sidecar')?.ratio ?? NaN, least),
      withoutGoal(`${scenario}: CPU time of the bare pass-through, of ours`, of(scenario, 'sidecar')?.cpuRatio ?? NaN),
      atLeast(
        `${scenario}: throughput, of the fastest Node.js peer's`,
        speed(scenario, 'sidecar') / fastestPeer(scenario),
        1,
      ),
      withoutGoal(`${scenario}: throughput, of Caddy's`, speed(scenario, 'sidecar') / speed(scenario, 'caddy')),
      withoutGoal(`${scenario}: throughput, of nginx's`, speed(scenario, 'sidecar') / speed(scenario, 'nginx')),
    ]),
    ...['get1', 'post1'].flatMap((scenario) => {
      const addedOfBare = (field: 'addedP50Us' | 'addedP99Us'): number =>
        (of(scenario, 'sidecar')?.[field] ?? NaN) / (of(scenario, 'bare')?.[field] ?? NaN);
      return [
        atMost(`${scenario}: added p50, of the bare pass-through's`, addedOfBare('addedP50Us'), 1.1),
        atMost(`${scenario}: added p99, of the bare pass-through's`, addedOfBare('addedP99Us'), 1.5),
      ];
    }),
    ...[1000, 5000].flatMap((rate) => [
      atMost(
        `open loop, ${String(rate)} calls a second: p99, of the bare pass-through's`,
        openLoopRatio(rate, 'p99Us'),
        1.2,
      ),
      atMost(
        `open loop, ${String(rate)} calls a second: p99.9, of the bare pass-through's`,
        openLoopRatio(rate, 'p999Us'),
        1.2,
      ),
    ]),
    atMost('peak memory, 64 connections (GET), MiB', (of('get64', 'sidecar')?.peakBytes ?? NaN) / MIB, 120),
    atMost('peak memory, 64 connections (POST), MiB', (of('post64', 'sidecar')?.peakBytes ?? NaN) / MIB, 120),
    withoutGoal('peak memory, 1000 connections (GET), MiB', (of('get1000', 'sidecar')?.peakBytes ?? NaN) / MIB),
    atMost('idle memory, MiB', (start?.idleBytes ?? NaN) / MIB, 64),
    atMost('start to ready, ms', start?.startMs ?? NaN, 200),
  ];
  return verdicts.filter(({ value }) => value !== 'NaN');
}

function atLeast(what: string, value: number, least: number): GoalResult {
  return { what, value: value.toFixed(2), goal: `≥ ${least.toFixed(2)}`, isReached: value >= least };
}

function atMost(what: string, value: number, most: number): GoalResult {
  const digits = most > 10 ? 0 : 2;
  return { what, value: value.toFixed(digits), goal: `≤ ${most.toFixed(digits)}`, isReached: value <= most };
}

function withoutGoal(what: string, value: number): GoalResult {
  return { what, value: value.toFixed(2), goal: '', isReached: undefined };
}
