/** `npm run soak:mixed [-- COUNT]`: 200 000 requests or up to 2 000 000, one in a hundred of which the upstream fails. */
import { findGrowth, runMixedSoak } from '../chaos/mixed-soak.ts';

const count = Math.min(Number(process.argv[2] ?? 200_000), 2_000_000);
const { looks, outcomes, faults } = await runMixedSoak(count, ({ requests, rssMiB, descriptors, seconds }) => {
  const part = `${String(Math.round((100 * requests) / count))} %`.padStart(5);
  console.log(`${part}: ${requests} requests, RSS ${rssMiB} MiB, ${descriptors} descriptors, ${seconds.toFixed(0)} s`);
});
const { seconds = 0 } = looks.at(-1) ?? {};
console.log(
  `${(count / seconds).toFixed(0)} requests a second; upstream faults: ${faults}; ${JSON.stringify(outcomes)}`,
);
const growth = findGrowth(looks);
for (const found of growth) console.error(found);
process.exitCode = growth.length === 0 ? 0 : 1;
