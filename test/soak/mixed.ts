/** `npm run soak:mixed [-- COUNT]`: 200 000 requests or up to 2 000 000, one in a hundred of which the upstream fails. */
import { findGrowth, runMixedSoak } from '../chaos/mixed-soak.ts';

const count = Math.min(Number(process.argv[2] ?? 200_000), 2_000_000);
const { looks, outcomes, faults, altered } = await runMixedSoak(count, ({ requests, rssMiB, descriptors, seconds }) => {
  const part = `${String(Math.round((100 * requests) / count))} %`.padStart(5);
  console.log(`${part}: ${requests} requests, RSS ${rssMiB} MiB, ${descriptors} descriptors, ${seconds.toFixed(0)} s`);
});
const { seconds = 0 } = looks.at(-1) ?? {};
console.log(
  `${(count / seconds).toFixed(0)} requests a second; upstream faults: ${faults}; ${JSON.stringify(outcomes)}`,
);
console.log(`bodies altered: ${altered.length}`);
const found = [...findGrowth(looks), ...altered.slice(0, 20)];
for (const fault of found) console.error(fault);
process.exitCode = found.length === 0 ? 0 : 1;
