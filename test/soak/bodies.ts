/**
 * `npm run soak:bodies [-- COUNT] [--node VERSION] [--seed N]`: so many bodies in pieces, 100 000 by default, shared between the
 * supported versions of Node.js unless one is named. Ends with 1 when any body passed for complete that was altered.
 */
import { parseArgs } from 'node:util';
import { describeBodies, runBodies } from '../bodies/load.ts';
import { NODE_VERSIONS, installNode } from '../support/node-versions.ts';

const SHOWN = 20;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { node: { type: 'string' }, seed: { type: 'string' } },
});
const versions = values.node === undefined ? NODE_VERSIONS : [values.node];
const count = Math.ceil(Number(positionals[0] ?? 100_000) / versions.length);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
for (const version of versions) {
  const node = await installNode(version);
  const report = await runBodies({ count, seed, node, name: `soak-bodies-${version}` });
  console.log(`Node.js ${version}, seed ${String(seed)}: ${describeBodies(report)}`);
  for (const alteration of report.altered.slice(0, SHOWN)) console.error(alteration);
  if (report.altered.length > 0) process.exitCode = 1;
}
