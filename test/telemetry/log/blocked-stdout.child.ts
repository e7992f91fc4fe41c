/** Logs 200 000 lines to a stdout that may have no reader, closes the log, and exits; reports the figures on stderr. */
import { writeSync } from 'node:fs';
import { createLog } from '../../../src/telemetry/log/log.ts';

const log = createLog({ level: 'info' });
for (let turn = 0; turn < 200; turn++) {
  for (let line = 0; line < 1000; line++) log.info('request', { turn, line, path: '/policies/'.repeat(10) });
  await new Promise((resolve) => setImmediate(resolve));
}
const rssMiB = Math.round(process.memoryUsage().rss / 1024 / 1024);
const closingAt = performance.now();
await log.close(500);
const closeMs = Math.round(performance.now() - closingAt);
writeSync(2, JSON.stringify({ rssMiB, droppedLines: log.droppedLines(), closeMs }));
process.exit(0);
