/** One worker thread of the cases benchmark: plays runs, one after another. */
import { parentPort } from 'node:worker_threads';
import { findCase } from './cases.ts';
import { play, type RunJob } from './play.ts';

if (parentPort === null) throw new Error('worker.ts is started by main.ts');
const port = parentPort;

// Each call that the queue rejects is an exception; its stack is not needed here.
Error.stackTraceLimit = 0;

port.on('message', (job: RunJob) => {
  void play(findCase(job.name), job).then((record) => {
    port.postMessage(record);
  });
});
