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
  const results: Result[] = [];
  await runInWorkers<Job>(new URL('worker.ts', import.meta.url), jobs, workers, (job, runs) => {
    const result = { job, figures: summarize(runs as Figures[]) };
    results.push(result);
    onResult(result);
  });
  return results;
}

/**
 * Sends each job to one of the worker threads, which replies with one message.
 * @param onReply called in the order of the jobs, as soon as all before have replied
 * @throws Error when a worker fails
 */
export async function runInWorkers<J>(
  file: URL,
  jobs: readonly J[],
  workers: number,
  onReply: (job: J, reply: unknown) => void,
): Promise<void> {
  const replies: ({ readonly job: J; readonly reply: unknown } | undefined)[] = jobs.map(() => undefined);
  let next = 0;
  let reported = 0;
  const settle = (index: number, job: J, reply: unknown): void => {
    replies[index] = { job, reply };
    for (let ready = replies[reported]; ready !== undefined; ready = replies[++reported])
      onReply(ready.job, ready.reply);
  };
  const work = async (): Promise<void> => {
    const worker = new Worker(file);
    try {
      for (let index = next++; index < jobs.length; index = next++) {
        const job = jobs[index];
        if (job !== undefined) settle(index, job, await ask(worker, job));
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: Math.min(workers, jobs.length) }, work));
}

function ask(worker: Worker, job: unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    worker.removeAllListeners();
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.postMessage(job);
  });
}
