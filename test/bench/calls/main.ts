/**
 * How many functions of src/ one request calls, through the `run` command with default settings: a warm, uncontended GET, and a POST
 * after a limit has been learned. Timing plays no part; functions, methods, accessors, constructors and arrow functions count. Then the bytes
 * that V8 allocates for one request, beside those of the bare pass-through.
 * Run: npm run bench:calls [-- --list] [-- --root <another checkout with its node_modules>]
 */
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { writeProgram } from '../../../tools/bundle/write-program.ts';
import { measureAllocations } from './allocations.ts';
import { recordWarmGet, startCallsFixture } from './measured-calls.ts';
import { countCalls, type CallFigures } from './recorded-calls.ts';

const { values } = parseArgs({
  options: {
    root: { type: 'string', default: resolve(import.meta.dirname, '..', '..', '..') },
    /** Prints each function with its number of calls. */
    list: { type: 'boolean', default: false },
  },
});

const HIDDEN_LIMIT_PER_SECOND = 10;
const LEARNING_MS = 12_000;

print('one warm GET', countCalls(await recordWarmGet(values.root)));
await measurePost();
await writeProgram(values.root, join(values.root, 'dist'));
const { sidecar, bare } = await measureAllocations(join(values.root, 'dist', 'main.js'));
for (const method of ['get', 'post'] as const) {
  const [own, least] = [sidecar[method], bare[method]];
  console.log(
    `one ${method.toUpperCase()} allocates ${own.toFixed(0)} bytes, bare ${least.toFixed(0)}: ${(own / least).toFixed(2)} times`,
  );
}

async function measurePost(): Promise<void> {
  await using fixture = await startCallsFixture(values.root, HIDDEN_LIMIT_PER_SECOND);
  const end = performance.now() + LEARNING_MS;
  while (performance.now() < end) await Promise.all([1, 2, 3, 4].map(() => fixture.send('POST')));
  // The permits of one window come back, so that none of the recorded calls waits.
  await sleep(3000);
  const figures = countCalls(await fixture.recordLeast('POST'));
  const { refused } = fixture.upstream;
  print(`one POST after a learned limit (the upstream refused ${String(refused)} calls before)`, figures);
}

function print(title: string, figures: CallFigures): void {
  const { calls, functions, files, fileChanges, byFolder, byFunction } = figures;
  console.log(`${title}: ${calls} calls of ${functions} functions in ${files} files, ${fileChanges} changes of file`);
  const folders = [...byFolder].toSorted(([, one], [, other]) => other - one);
  console.log(`  ${folders.map(([folder, count]) => `${folder} ${count}`).join(' · ')}`);
  if (!values.list) return;
  for (const [name, count] of [...byFunction].toSorted(([one], [other]) => one.localeCompare(other)))
    console.log(`  ${String(count).padStart(5)}  ${name}`);
}
