/** How much memory this process really holds: what is left after a garbage collection. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes held by JavaScript values, buffers included. */
export async function heldBytes(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    // What finalizers give back is free only after another turn.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
