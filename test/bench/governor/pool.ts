/** Runs jobs in worker threads and returns their results in the order of the jobs. */
import { Worker } from 'node:worker_threads';
import { type Figures, summarize } from './figures.ts';
import type { Job } from './play.ts';

/** A job and its figures. */
export interface Result {
  readonly job: Job;
  /** Over all its seeds. */
  readonly figures: Figures;
}

/**
 * @param onResult called for each result, in the order of the jobs, as soon as it is known
 * @throws Error when a worker fails
 */
export async function playAll(
  jobs: readonly Job[],
  workers: number,
  onResult: (result: Result) => void,
): Promise<Result[]> {
  const results: (Result | undefined)[] = jobs.map(() => undefined);
  let next = 0;
  let reported = 0;
  const settle = (index: number, result: Result): void => {
    results[index] = result;
    for (let ready = results[reported]; ready !== undefined; ready = results[++reported]) onResult(ready);
  };
  const work = async (): Promise<void> => {
    const worker = new Worker(new URL('worker.ts', import.meta.url));
    try {
      for (let index = next++; index < jobs.length; index = next++) {
        const job = jobs[index];
        if (job !== undefined) settle(index, { job, figures: summarize(await ask(worker, job)) });
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: Math.min(workers, jobs.length) }, work));
  return results.filter((result) => result !== undefined);
}

function ask(worker: Worker, job: Job): Promise<Figures[]> {
  return new Promise((resolve, reject) => {
    worker.removeAllListeners();
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.postMessage(job);
  });
}
