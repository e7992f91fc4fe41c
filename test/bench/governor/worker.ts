/** One worker thread of the benchmark: runs the jobs that it receives, one after another. */
import { parentPort } from 'node:worker_threads';
import { type Job, play } from './play.ts';

if (parentPort === null) throw new Error('worker.ts is started by pool.ts');
const port = parentPort;

// Each call that the queue rejects is an exception; its stack is not needed here.
Error.stackTraceLimit = 0;

port.on('message', (job: Job) => {
  void play(job).then((runs) => {
    port.postMessage(runs);
  });
});
