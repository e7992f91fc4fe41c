/** One worker thread of the family benchmark: plays drawn limits, one after another. */
import { parentPort } from 'node:worker_threads';
import { playRun } from '../play.ts';
import { measureAfterLearning, type MemberFigures } from './after-learning.ts';
import { drawMember, type Member } from './families.ts';
import { type PolicyCosts, playTimed } from './policy-costs.ts';

/** Which limit is played, and by which client. */
export interface MemberJob {
  readonly index: number;
  /** As of drawMember. */
  readonly seedText: string;
  readonly client: string;
  /** Also measures what the learned rate policy costs. */
  readonly measuresCosts: boolean;
}

export interface MemberReply {
  readonly figures: MemberFigures;
  readonly costs: PolicyCosts | undefined;
}

if (parentPort === null) throw new Error('worker.ts is started by main.ts');
const port = parentPort;

// Each call that the queue rejects is an exception; its stack is not needed here.
Error.stackTraceLimit = 0;

port.on('message', ({ index, seedText, client, measuresCosts }: MemberJob) => {
  const member = drawMember(index, seedText);
  void play(member, client, measuresCosts).then(([record, costs]) => {
    const reply: MemberReply = { figures: measureAfterLearning(member, record), costs };
    port.postMessage(reply);
  });
});

async function play(member: Member, client: string, measuresCosts: boolean) {
  if (measuresCosts) return playTimed(client, member);
  return [await playRun(client, member.conditions, member.seed), undefined] as const;
}
