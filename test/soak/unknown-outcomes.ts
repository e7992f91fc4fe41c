/** `npm run soak:unknown [-- POSTS SEED]`: POSTs under faults, refusals, stalls and drains, beside the upstream's own count. */
import { runUnknownOutcomes } from '../chaos/unknown-outcomes.ts';

const [posts = 2000, seed = 1] = process.argv.slice(2).map(Number);
const startedAt = performance.now();
const report = await runUnknownOutcomes(seed, posts);
console.table(report.replies);
console.log(`the upstream: ${JSON.stringify(report.acted)}`);
console.log(
  `${report.requests} POSTs with seed ${seed}, ${report.seen} carried out, ${report.lives} sidecars, ` +
    `${((performance.now() - startedAt) / 1000).toFixed(0)} s in all`,
);
console.log(
  `carried out and reported as not carried out: ${report.falselyRefused}; not marked: ${report.unmarked}; twice: ${report.duplicatedPosts}`,
);
for (const violation of report.violations.slice(0, 20)) console.error(violation);
process.exitCode = report.violations.length === 0 ? 0 : 1;
