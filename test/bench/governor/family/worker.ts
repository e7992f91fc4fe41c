/** One worker thread of the family benchmark: plays drawn limits, one after another. */
import { parentPort } from 'node:worker_threads';
import { playRun } from '../play.ts';
import { measureAfterLearning } from './after-learning.ts';
import { drawMember } from './families.ts';

/** Which limit is played, and by which client. */
export interface MemberJob {
  readonly index: number;
  readonly client: string;
}

if (parentPort === null) throw new Error('worker.ts is started by main.ts');
const port = parentPort;

// Each call that the queue rejects is an exception; its stack is not needed here.
Error.stackTraceLimit = 0;

port.on('message', ({ index, client }: MemberJob) => {
  const member = drawMember(index);
  void playRun(client, member.conditions, member.seed).then((record) => {
    port.postMessage(measureAfterLearning(member, record));
  });
});
