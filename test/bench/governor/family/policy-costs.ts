/**
 * The time that the learned rate policy takes: after learning for calls that are granted at once and for calls that waited, and for each
 * refusal of a run. Time on the wall, so each run is played twice, and the smaller time of each refusal counts. Tables are policy-report.ts.
 */
import { LearnedRatePolicy } from '../../../../src/throttle/adaptive/learned-rate-policy.ts';
import { playRun } from '../play.ts';
import type { RunRecord } from '../world.ts';
import { LEARNING_WINDOWS, type Member, MIN_LEARNING_MS } from './families.ts';

/** Of a number of calls. */
interface CallCost {
  calls: number;
  totalMs: number;
}

export interface PolicyCosts {
  /** Calls after learning that were granted at once. */
  readonly immediate: Readonly<CallCost>;
  /** Calls after learning that were held back. */
  readonly waited: Readonly<CallCost>;
  /** Of each refusal of the run. */
  readonly refusalsMs: readonly number[];
  /** CPU of the whole run, the simulated world included, and its attempts. */
  readonly run: Readonly<CallCost>;
}

type TimedMethod = 'nextAt' | 'take' | 'recordAccepted' | 'recordRefused';

let costs = createCosts();
let learnedFromMs = 0;
/** Of `nextAt` since the last grant: it was asked for the sake of the next. */
let untilGrantMs = 0;
let isInstalled = false;

/** Plays the run of `playRun` twice. The first call changes LearnedRatePolicy in this thread for good. */
export async function playTimed(client: string, member: Member): Promise<readonly [RunRecord, PolicyCosts]> {
  install();
  const [, first] = await playOnce(client, member);
  const [record, second] = await playOnce(client, member);
  const refusalsMs = second.refusalsMs.map((ms, at) => Math.min(ms, first.refusalsMs[at] ?? Infinity));
  return [
    record,
    {
      immediate: cheaper(first.immediate, second.immediate),
      waited: cheaper(first.waited, second.waited),
      run: cheaper(first.run, second.run),
      refusalsMs,
    },
  ];
}

async function playOnce(client: string, member: Member): Promise<readonly [RunRecord, PolicyCosts]> {
  costs = createCosts();
  learnedFromMs = Math.max(MIN_LEARNING_MS, LEARNING_WINDOWS * member.memoryMs);
  const before = process.threadCpuUsage();
  const record = await playRun(client, member.conditions, member.seed);
  const { user, system } = process.threadCpuUsage(before);
  const run = { calls: record.acceptedAt.length + record.refusedAt.length, totalMs: (user + system) / 1000 };
  return [record, { ...costs, run }];
}

function createCosts() {
  const none = (): CallCost => ({ calls: 0, totalMs: 0 });
  return { immediate: none(), waited: none(), refusalsMs: [] as number[] };
}

function cheaper(one: CallCost, other: CallCost): CallCost {
  return one.totalMs < other.totalMs ? one : other;
}

function install(): void {
  if (isInstalled) return;
  isInstalled = true;
  timeMethod('nextAt', ([now], ms) => {
    if (Number(now) >= learnedFromMs) untilGrantMs += ms;
  });
  timeMethod('take', ([now, isWaitedFor], ms) => {
    const cost = isWaitedFor === true ? costs.waited : costs.immediate;
    if (Number(now) >= learnedFromMs) {
      cost.calls++;
      cost.totalMs += untilGrantMs + ms;
    }
    untilGrantMs = 0;
  });
  timeMethod('recordAccepted', ([now, grant], ms) => {
    const { isWaitedFor } = grant as { isWaitedFor: boolean };
    if (Number(now) >= learnedFromMs) (isWaitedFor ? costs.waited : costs.immediate).totalMs += ms;
  });
  timeMethod('recordRefused', (_, ms) => costs.refusalsMs.push(ms));
}

function timeMethod(name: TimedMethod, record: (args: readonly unknown[], ms: number) => void): void {
  const { prototype } = LearnedRatePolicy;
  const original = Reflect.get(prototype, name) as (...args: unknown[]) => unknown;
  Reflect.set(prototype, name, function (this: LearnedRatePolicy, ...args: unknown[]): unknown {
    const begunAt = performance.now();
    const result = original.apply(this, args);
    record(args, performance.now() - begunAt);
    return result;
  });
}
