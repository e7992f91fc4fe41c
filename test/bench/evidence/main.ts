/**
 * How often the evidence proposes a setting: for hidden limits, with the time that it takes, and for other causes of the same statuses, where
 * each proposal is wrong. `npm run bench:evidence -- --seeds 20 --only fixed`.
 */
import { parseArgs } from 'node:util';
import { LIMITED, NOT_LIMITED } from './cases.ts';
import { runCase, type Case } from './world.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    only: { type: 'string', default: '' },
    kind: { type: 'string', default: '' },
  },
});
const seeds = Number(values.seeds);

function report(title: string, cases: readonly Case[]): void {
  const chosen = cases.filter(({ name }) => name.includes(values.only));
  if (chosen.length === 0) return;
  let total = 0;
  console.log(`\n${title}\n${'case'.padEnd(58)} proposed  median time  as`);
  for (const one of chosen) {
    const times: number[] = [];
    let example = '';
    for (let seed = 1; seed <= seeds; seed++) {
      const { foundAtMs, finding } = runCase(one, seed);
      if (foundAtMs === undefined) continue;
      times.push(foundAtMs);
      if (finding !== undefined) example = `${finding.acceptedPerWindow} per ${finding.windowMs / 1000} s`;
    }
    total += times.length;
    times.sort((a, b) => a - b);
    const middle = times[times.length >> 1];
    const time = middle === undefined ? '' : `${(middle / 1000).toFixed(0)} s`;
    console.log(`${one.name.padEnd(58)} ${`${times.length}/${seeds}`.padStart(8)}  ${time.padStart(11)}  ${example}`);
  }
  console.log(`${'all'.padEnd(58)} ${`${total}/${chosen.length * seeds}`.padStart(8)}`);
}

if (values.kind !== 'other') report('Hidden limits', LIMITED);
if (values.kind !== 'limit') report('Other causes: each proposal is false', NOT_LIMITED);
