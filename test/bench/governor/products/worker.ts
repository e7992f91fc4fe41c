/** One worker thread of the products benchmark: plays the runs of products, one after another. */
import { parentPort } from 'node:worker_threads';
import { measureAfterLearning } from '../family/after-learning.ts';
import { playRun } from '../play.ts';
import { PRODUCTS } from './products.ts';
import { planRun, PRODUCT_LOADS } from './runs.ts';

/** Positions in PRODUCTS and PRODUCT_LOADS, and a seed. */
export interface ProductJob {
  readonly product: number;
  readonly load: number;
  readonly seed: number;
}

if (parentPort === null) throw new Error('worker.ts is started by main.ts');
const port = parentPort;

// Each call that the queue rejects is an exception; its stack is not needed here.
Error.stackTraceLimit = 0;

port.on('message', (job: ProductJob) => {
  const product = PRODUCTS[job.product];
  const load = PRODUCT_LOADS[job.load];
  if (product === undefined || load === undefined) throw new RangeError('there is no such product or load');
  const run = planRun(product, load, job.seed);
  void playRun('ours', run.conditions, run.seed).then((record) => {
    port.postMessage(measureAfterLearning(run, record));
  });
});
