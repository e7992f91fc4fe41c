/** `npm run soak:restarts [-- COUNT]`: SIGTERM and a new start on the same port, under load, again and again. */
import { runRestarts } from '../chaos/restarts.ts';

const startedAt = performance.now();
const report = await runRestarts(Number(process.argv[2] ?? 100));
console.log(
  `${report.restarts} restarts under load in ${((performance.now() - startedAt) / 1000).toFixed(0)} s: ` +
    `${report.requests} requests, ${report.seen} reached the upstream, slowest ${report.slowestMs.toFixed(0)} ms`,
);
console.log(
  `outcomes: ${JSON.stringify(report.outcomes)}; connections refused meanwhile: ${report.rejectedConnections}`,
);
console.log(
  `accepted and without a response: ${report.lost.length}; broken before they were read: ${report.brokenUnread.length}`,
);
console.log(`exits other than 0: ${report.failedExits.length}`);
for (const violation of report.violations.slice(0, 20)) console.error(violation);
const isClean = report.lost.length === 0 && report.failedExits.length === 0 && report.violations.length === 0;
process.exitCode = isClean ? 0 : 1;
