/**
 * What `throttle.assumeRefusals` costs where bare 503 and 403 are no rate limit: for how long calls were delayed wrongly, in seconds an hour.
 * `npm run bench:evidence -- --seeds 3 --first-seed 1001 --only outages`; with --write it writes docs/benchmarks/robustness.md.
 */
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { writeRobustness } from '../robustness-page.ts';
import type { CaseOrder, RunPair } from './case-worker.ts';
import { CASES } from './cases.ts';
import { type CaseDelays, describeDelays, HEADINGS, writeEvidence } from './page.ts';
import type { Case } from './world.ts';

const HOUR_MS = 3_600_000;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '3' },
    'first-seed': { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    write: { type: 'boolean', default: false },
    workers: { type: 'string', default: String(availableParallelism()) },
  },
});

async function runAll(): Promise<CaseDelays[]> {
  const chosen = CASES.flatMap((one, index) => (one.name.includes(values.only) ? [{ one, index }] : []));
  const delays: CaseDelays[] = [];
  let [printed, next] = [0, 0];
  const work = async (): Promise<void> => {
    const worker = new Worker(new URL('case-worker.ts', import.meta.url));
    for (let place = next++; place < chosen.length; place = next++) {
      const { one, index } = chosen[place] ?? {};
      if (one === undefined || index === undefined) break;
      const order: CaseOrder = { index, firstSeed: Number(values['first-seed']), seeds: Number(values.seeds) };
      const replied = once(worker, 'message') as Promise<[readonly RunPair[]]>;
      worker.postMessage(order);
      const [pairs] = await replied;
      delays[place] = computeDelays(one, pairs);
      for (let done = delays[printed]; done !== undefined; done = delays[++printed]) print(describeDelays(done));
    }
    await worker.terminate();
  };
  await Promise.all(Array.from({ length: Number(values.workers) }, work));
  return delays;
}

function computeDelays({ name, durationMs }: Case, pairs: readonly RunPair[]): CaseDelays {
  const hours = (durationMs * pairs.length) / HOUR_MS;
  const sum = (of: (pair: RunPair) => number): number => pairs.reduce((all, pair) => all + of(pair), 0);
  const most = (of: (pair: RunPair) => number): number => Math.max(...pairs.map(of));
  return {
    name,
    assumedPerHour: sum(({ paced }) => paced.assumed) / hours,
    delayedSeconds: sum(({ paced, plain }) => Math.max(0, paced.delayedMs - plain.delayedMs)) / 1000 / hours,
    waitedSeconds: sum(({ paced, plain }) => Math.max(0, paced.waitedMs - plain.waitedMs)) / 1000 / hours,
    longestSeconds: most(({ paced }) => (paced.assumed === 0 ? 0 : paced.longestWaitMs / 1000)),
    rejected: sum(({ paced, plain }) => Math.max(0, paced.rejected - plain.rejected)),
  };
}

function print(cells: readonly string[]): void {
  console.log(cells.map((cell, index) => (index === 0 ? cell.padEnd(66) : cell.padStart(12))).join(''));
}

print(HEADINGS);
const delays = await runAll();
const late = delays.filter(({ delayedSeconds }) => delayedSeconds > 30);
console.log(`${delays.length - late.length} of ${delays.length} cases are delayed by at most 30 s an hour`);
const only = values.only === '' ? '' : ` --only '${values.only}'`;
const options = `--seeds ${values.seeds} --first-seed ${values['first-seed']}${only}`;
if (values.write) await writeRobustness('outages', writeEvidence(delays, options));
