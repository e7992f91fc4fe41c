/**
 * How often the evidence proposes a setting: for hidden limits, with the time that it takes, and for other causes of the same statuses, where
 * each proposal is wrong. `npm run bench:evidence -- --seeds 20 --first-seed 1001 --only fixed`; with --write and without --only and --kind it
 * writes docs/benchmarks/evidence.md.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import type { CaseOrder } from './case-worker.ts';
import { LIMITED, NOT_LIMITED } from './cases.ts';
import { writeEvidencePage, type CaseStats } from './page.ts';
import type { Case, CaseResult } from './world.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    'first-seed': { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    kind: { type: 'string', default: '' },
    write: { type: 'boolean', default: false },
    workers: { type: 'string', default: String(availableParallelism()) },
  },
});
const seeds = Number(values.seeds);
const PAGE = new URL('../../../docs/benchmarks/evidence.md', import.meta.url);

async function report(title: string, cases: readonly Case[], isLimited: boolean): Promise<CaseStats[]> {
  const chosen = cases.flatMap((one, index) => (one.name.includes(values.only) ? [{ one, index }] : []));
  if (chosen.length === 0) return [];
  console.log(`\n${title}\n${'case'.padEnd(58)} proposed  median time  as`);
  const lines: string[] = [];
  const stats: CaseStats[] = [];
  let [printed, next] = [0, 0];
  const work = async (): Promise<void> => {
    const worker = new Worker(new URL('case-worker.ts', import.meta.url));
    for (let place = next++; place < chosen.length; place = next++) {
      const { one, index } = chosen[place] ?? {};
      if (one === undefined || index === undefined) break;
      const order: CaseOrder = { isLimited, index, firstSeed: Number(values['first-seed']), seeds };
      const replied = once(worker, 'message') as Promise<[readonly CaseResult[]]>;
      worker.postMessage(order);
      const [results] = await replied;
      const ofCase = computeStats(one, results);
      stats[place] = ofCase;
      lines[place] = describeResults(ofCase, results);
      for (let line = lines[printed]; line !== undefined; line = lines[++printed]) console.log(line);
    }
    await worker.terminate();
  };
  await Promise.all(Array.from({ length: Number(values.workers) }, work));
  const total = stats.reduce((sum, { found }) => sum + found, 0);
  console.log(`${'all'.padEnd(58)} ${`${total}/${chosen.length * seeds}`.padStart(8)}`);
  return stats;
}

function computeStats({ name }: Case, results: readonly CaseResult[]): CaseStats {
  const times = results.flatMap(({ foundAtMs }) => foundAtMs ?? []).toSorted((a, b) => a - b);
  return { name, found: times.length, runs: results.length, medianMs: times[times.length >> 1] };
}

function describeResults({ name, found, runs, medianMs }: CaseStats, results: readonly CaseResult[]): string {
  const time = medianMs === undefined ? '' : `${(medianMs / 1000).toFixed(0)} s`;
  const finding = results.find((result) => result.finding !== undefined)?.finding;
  const example = finding === undefined ? '' : `${finding.acceptedPerWindow} per ${finding.windowMs / 1000} s`;
  return `${name.padEnd(58)} ${`${found}/${runs}`.padStart(8)}  ${time.padStart(11)}  ${example}`.trimEnd();
}

const limits = values.kind === 'other' ? [] : await report('Hidden limits', LIMITED, true);
const others = values.kind === 'limit' ? [] : await report('Other causes: each proposal is false', NOT_LIMITED, false);
if (values.write && limits.length === LIMITED.length && others.length === NOT_LIMITED.length)
  writeFileSync(
    PAGE,
    writeEvidencePage(limits, others, `--seeds ${values.seeds} --first-seed ${values['first-seed']}`),
  );
