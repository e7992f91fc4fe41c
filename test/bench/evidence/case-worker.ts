/** Runs the cases that it is sent with all seeds, beside other workers of `npm run bench:evidence`. */
import { parentPort } from 'node:worker_threads';
import { LIMITED, NOT_LIMITED } from './cases.ts';
import { runCase, type CaseResult } from './world.ts';

/** A case by its place in its list. */
export interface CaseOrder {
  readonly isLimited: boolean;
  readonly index: number;
  readonly firstSeed: number;
  readonly seeds: number;
}

parentPort?.on('message', ({ isLimited, index, firstSeed, seeds }: CaseOrder) => {
  const one = (isLimited ? LIMITED : NOT_LIMITED)[index];
  const results: CaseResult[] = [];
  if (one !== undefined) for (let seed = 0; seed < seeds; seed++) results.push(runCase(one, firstSeed + seed));
  parentPort?.postMessage(results);
});
