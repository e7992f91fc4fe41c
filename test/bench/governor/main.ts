/**
 * The governor benchmark: clients against undocumented limits in virtual time. README.md in this folder describes options, files and figures.
 * Run: node test/bench/governor/main.ts --client ours --scenario fixed-100-10s --seeds 5
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CLIENTS, findClient } from './clients/clients.ts';
import { summarize } from './figures.ts';
import { formatGoodput, formatSeconds, formatShare } from './format.ts';
import { createJob, isCommonCase, planScenario } from './plan.ts';
import { type Job, play } from './play.ts';
import { drawPlot } from './plot.ts';
import { playAll, type Result } from './pool.ts';
import { writeReport } from './report.ts';
import { type Case, findScenario, listAllCases, listCases, readAllScenarios } from './scenario.ts';
import type { Tracing } from './world.ts';

const { values } = parseArgs({
  options: {
    client: { type: 'string', multiple: true },
    scenario: { type: 'string', multiple: true },
    seeds: { type: 'string' },
    load: { type: 'string' },
    hint: { type: 'string' },
    replicas: { type: 'string' },
    trace: { type: 'string' },
    all: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    workers: { type: 'string', default: `${availableParallelism()}` },
    out: { type: 'string' },
    json: { type: 'string' },
  },
});

const DEFAULT_SEEDS = 20;
const QUICK_SEEDS = 3;
const ROOT = new URL('../../../', import.meta.url);

const seeds = Number(values.seeds ?? (values.quick ? QUICK_SEEDS : DEFAULT_SEEDS));
const clients = values.client?.map(findClient) ?? CLIENTS;
const scenarios = values.scenario?.map(findScenario) ?? readAllScenarios();
const isFiltered = [values.load, values.hint, values.replicas].some((filter) => filter !== undefined) || values.all;

if (values.trace === undefined) await benchmark();
else await trace(Number(values.trace) * 1000);

async function benchmark(): Promise<void> {
  const startedAt = performance.now();
  const results = await playAll(listJobs(), Number(values.workers), (result) => {
    console.log(describeResult(result));
  });
  console.log(`${results.length} cases in ${Math.round((performance.now() - startedAt) / 1000)} s`);
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(results, replaceInfinity, 1));
  if (values.out === undefined) return;
  mkdirSync(values.out, { recursive: true });
  writeFileSync(join(values.out, 'governor.md'), writeReport(results, readVersions()));
  writeFileSync(join(values.out, 'governor.svg'), drawPlot(results));
}

/** Without a filter the cases of the plan; with one, or `--all`, every case that fits. */
function listJobs(): Job[] {
  return scenarios.flatMap((scenario) =>
    clients.flatMap((client) => {
      if (values.quick)
        return listCases(scenario)
          .filter(isCommonCase)
          .map((played) => createJob(client, played, seeds));
      if (!isFiltered) return planScenario(scenario, client, seeds);
      return listAllCases(scenario)
        .filter(isWanted)
        .map((played) => createJob(client, played, seeds));
    }),
  );
}

function isWanted({ load, conditions }: Case): boolean {
  if (values.load !== undefined && load !== values.load && load !== `${values.load}×`) return false;
  if (values.hint !== undefined && conditions.hint !== values.hint) return false;
  return values.replicas === undefined || conditions.replicas === Number(values.replicas);
}

function describeResult({ job, figures }: Result): string {
  const { scenario, load, conditions } = job.played;
  return [
    `${job.client.padEnd(15)} ${scenario.padEnd(21)} ${load.padEnd(7)} ${conditions.hint.padEnd(20)} N=${conditions.replicas}`,
    `goodput ${formatGoodput(figures.goodput)}`,
    `refused ${formatShare(figures.refusedShare)}`,
    `wait ${formatSeconds(figures.waitP50Ms)} p99 ${formatSeconds(figures.waitP99Ms)}`,
    `converged ${formatSeconds(figures.convergedMs)}`,
    ...(figures.stepUpMs === undefined
      ? []
      : [`up ${formatSeconds(figures.stepUpMs)} down ${formatSeconds(figures.stepDownMs)}`]),
    ...(conditions.replicas === 1 ? [] : [`Jain ${figures.jain.toFixed(3)}`]),
    `failed ${formatShare(figures.failedShare)}`,
  ].join(' · ');
}

/** The seed `--seeds` (default 1) of each case, in this thread, with the state of the first replica. */
async function trace(everyMs: number): Promise<void> {
  for (const job of listJobs()) {
    const figures = summarize(await play({ ...job, seeds: [Number(values.seeds ?? 1)] }, () => traceEvery(everyMs)));
    console.log(describeResult({ job, figures }));
  }
}

function traceEvery(everyMs: number): Tracing {
  let before: readonly [number, number] = [0, 0];
  return {
    everyMs,
    report(at, client, accepted, refused) {
      const [acceptedBefore, refusedBefore] = before;
      before = [accepted, refused];
      const counts = `accepted ${accepted - acceptedBefore} refused ${refused - refusedBefore}`;
      console.log(`${(at / 1000).toFixed(1).padStart(8)} s  ${counts.padEnd(28)} ${client.describe?.() ?? ''}`);
    },
  };
}

/** The published versions that were played against. */
function readVersions(): Record<string, string> {
  const text = readFileSync(new URL('package.json', ROOT), 'utf8');
  const { dependencies, devDependencies } = JSON.parse(text) as Record<string, Record<string, string>>;
  return { ...devDependencies, ...dependencies };
}

/** JSON knows no infinity. */
function replaceInfinity(_key: string, value: unknown): unknown {
  return value === Infinity ? 'never' : value;
}
