/**
 * The long form of the fuzzer: mutated requests at the sidecar as a child process, before a witness of every byte; then a
 * fifth as many with their bodies streamed.
 * Run: npm run soak:fuzz [-- COUNT [SEED]]; default 100000 and a seed of the clock's. Exits 1 when a claim is violated.
 */
import { fuzz } from '../hostile/fuzz.ts';
import { startBeforeWitness } from '../hostile/sidecar-before-witness.ts';

const count = Number(process.argv[2] ?? 100_000);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_000);

/** @throws Error when a claim does not hold */
async function run(what: string, requests: number, streams: boolean): Promise<void> {
  await using running = await startBeforeWitness('soak-fuzz', streams ? { SIDECAR_REPLAY_BUFFER_BYTES: '8' } : {});
  const { sidecar } = running;
  console.log(`${requests} mutated requests, ${what}, seed ${seed}, process ${sidecar.pid}`);
  const startedAt = performance.now();
  const { responses, ...report } = await fuzz(running, { count: requests, seed, streams });
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  // The process that was started is still there, and ends as it should.
  const { code } = await sidecar.stop();
  console.table({ ...report, ...responses, 'exit code': code, seconds });
  if (code !== 0) throw new Error(`the sidecar ended with ${code ?? 'a signal'}`);
}

try {
  await run('bodies held', count, false);
  await run('bodies streamed', Math.ceil(count / 5), true);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
