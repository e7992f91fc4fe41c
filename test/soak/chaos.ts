/** `npm run soak:chaos`: every byte offset of a 2 kB exchange, each kind of fault, both sides of the sidecar. */
import { runByteOffsets } from '../chaos/byte-offsets.ts';

const startedAt = performance.now();
const report = await runByteOffsets(1, 64);
console.table(report.table);
console.log(
  `${report.requests} requests of up to ${report.exchangeBytes} bytes, ${report.seen} seen whole by the upstream, ` +
    `slowest ${report.slowestMs.toFixed(0)} ms, ${((performance.now() - startedAt) / 1000).toFixed(0)} s in all`,
);
console.log(`falsely complete: ${report.falselyComplete}, POSTs sent twice: ${report.duplicatedPosts}`);
console.log(`ledger: ${report.violations.length === 0 ? 'balanced' : `${report.violations.length} violations`}`);
for (const violation of report.violations.slice(0, 20)) console.error(violation);
process.exitCode = report.violations.length === 0 ? 0 : 1;
