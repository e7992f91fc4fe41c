/** Runs the cases that it is sent with all seeds, beside other workers of `npm run bench:evidence`. */
import { parentPort } from 'node:worker_threads';
import { CASES } from './cases.ts';
import { runCase, type RunFigures } from './world.ts';

/** A case by its place in the list. */
export interface CaseOrder {
  readonly index: number;
  readonly firstSeed: number;
  readonly seeds: number;
}

/** A run with `throttle.assumeRefusals`, and the same without it. */
export interface RunPair {
  readonly paced: RunFigures;
  readonly plain: RunFigures;
}

parentPort?.on('message', ({ index, firstSeed, seeds }: CaseOrder) => {
  void run(index, firstSeed, seeds).then((pairs) => parentPort?.postMessage(pairs));
});

async function run(index: number, firstSeed: number, seeds: number): Promise<RunPair[]> {
  const one = CASES[index];
  const pairs: RunPair[] = [];
  for (let seed = firstSeed; one !== undefined && seed < firstSeed + seeds; seed++) {
    const paced = await runCase(one, seed, true);
    // Without an assumed refusal both are the same.
    pairs.push({ paced, plain: paced.assumed === 0 ? paced : await runCase(one, seed, false) });
  }
  return pairs;
}
