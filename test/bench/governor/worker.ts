/** One worker thread of the benchmark: plays the jobs that it is sent, one after another. */
import { parentPort } from 'node:worker_threads';
import { type Job, play } from './play.ts';

if (parentPort === null) throw new Error('worker.ts is started by pool.ts');
const port = parentPort;

// A call refused by the queue is an exception; nobody reads its stack here.
Error.stackTraceLimit = 0;

port.on('message', (job: Job) => {
  void play(job).then((runs) => {
    port.postMessage(runs);
  });
});
