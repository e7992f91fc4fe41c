/**
 * The products benchmark: our governor against the limiters of real products, in three loads. Run: npm run bench:products -- --seeds 2
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { MemberFigures } from '../family/after-learning.ts';
import { runInWorkers } from '../pool.ts';
import { PRODUCTS } from './products.ts';
import { describeRun, type PlayedRun, writeProductReport } from './report.ts';
import { PRODUCT_LOADS } from './runs.ts';
import type { ProductJob } from './worker.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '2' },
    seed: { type: 'string', default: '0' },
    product: { type: 'string', default: '' },
    workers: { type: 'string', default: `${availableParallelism()}` },
    json: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
});

const startedAt = performance.now();
const played: PlayedRun[] = [];
await runInWorkers<ProductJob>(
  new URL('worker.ts', import.meta.url),
  listJobs(),
  Number(values.workers),
  (job, reply) => {
    const run: PlayedRun = {
      product: PRODUCTS[job.product]?.name ?? '',
      load: PRODUCT_LOADS[job.load] ?? '',
      seed: job.seed,
      figures: reply as MemberFigures,
    };
    played.push(run);
    if (values.verbose) console.log(describeRun(run));
  },
);
const seconds = Math.round((performance.now() - startedAt) / 1000);
console.log(`\n## ${played.length} runs, ${seconds} s\n\n${writeProductReport(played)}`);
if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(played, undefined, 1));

function listJobs(): ProductJob[] {
  const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => Number(values.seed) + index + 1);
  return PRODUCTS.flatMap(({ name }, product) =>
    name.toLowerCase().includes(values.product.toLowerCase())
      ? PRODUCT_LOADS.flatMap((_, load) => seeds.map((seed) => ({ product, load, seed })))
      : [],
  );
}
