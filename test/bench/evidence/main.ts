/**
 * How often the evidence proposes a setting: for hidden limits, with the time that it takes, and for other causes of the same statuses, where
 * each proposal is wrong. `npm run bench:evidence -- --seeds 20 --first-seed 1001 --only fixed`.
 */
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import type { CaseOrder } from './case-worker.ts';
import { LIMITED, NOT_LIMITED } from './cases.ts';
import type { Case, CaseResult } from './world.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    'first-seed': { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    kind: { type: 'string', default: '' },
    workers: { type: 'string', default: String(availableParallelism()) },
  },
});
const seeds = Number(values.seeds);

async function report(title: string, cases: readonly Case[], isLimited: boolean): Promise<void> {
  const chosen = cases.flatMap((one, index) => (one.name.includes(values.only) ? [{ one, index }] : []));
  if (chosen.length === 0) return;
  console.log(`\n${title}\n${'case'.padEnd(58)} proposed  median time  as`);
  const lines: string[] = [];
  let [printed, next, total] = [0, 0, 0];
  const work = async (): Promise<void> => {
    const worker = new Worker(new URL('case-worker.ts', import.meta.url));
    for (let place = next++; place < chosen.length; place = next++) {
      const { one, index } = chosen[place] ?? {};
      if (one === undefined || index === undefined) break;
      const order: CaseOrder = { isLimited, index, firstSeed: Number(values['first-seed']), seeds };
      const replied = once(worker, 'message') as Promise<[readonly CaseResult[]]>;
      worker.postMessage(order);
      const [results] = await replied;
      total += results.filter(({ foundAtMs }) => foundAtMs !== undefined).length;
      lines[place] = describeResults(one, results);
      for (let line = lines[printed]; line !== undefined; line = lines[++printed]) console.log(line);
    }
    await worker.terminate();
  };
  await Promise.all(Array.from({ length: Number(values.workers) }, work));
  console.log(`${'all'.padEnd(58)} ${`${total}/${chosen.length * seeds}`.padStart(8)}`);
}

function describeResults({ name }: Case, results: readonly CaseResult[]): string {
  const times = results.flatMap(({ foundAtMs }) => foundAtMs ?? []).toSorted((a, b) => a - b);
  const middle = times[times.length >> 1];
  const time = middle === undefined ? '' : `${(middle / 1000).toFixed(0)} s`;
  const finding = results.find((result) => result.finding !== undefined)?.finding;
  const example = finding === undefined ? '' : `${finding.acceptedPerWindow} per ${finding.windowMs / 1000} s`;
  return `${name.padEnd(58)} ${`${times.length}/${results.length}`.padStart(8)}  ${time.padStart(11)}  ${example}`.trimEnd();
}

if (values.kind !== 'other') await report('Hidden limits', LIMITED, true);
if (values.kind !== 'limit') await report('Other causes: each proposal is false', NOT_LIMITED, false);
