/**
 * `npm run soak:connections`: 10 000 idle and 2 000 dripping connections beside a normal client, 100 slow readers of
 * 50 MB, clients that leave. Prints what it measured and ends with 1 when a claim does not hold. About a minute.
 */
import { measureConnectionLoad } from './crowd.ts';
import type { Latency } from './crowd.ts';
import { measureClientAborts } from './departures.ts';
import type { WaitingPlace } from './departures.ts';
import { measureSlowReaders } from './slow-readers.ts';

const MIB = 1024 * 1024;
const CONNECTION_LOAD = { idle: 10_000, slow: 2000, requests: 4000 };
const MOST_DESCRIPTORS = CONNECTION_LOAD.idle + CONNECTION_LOAD.slow + 1000;

function claim(what: string, holds: boolean): void {
  console.log(`${holds ? 'ok      ' : 'VIOLATED'} ${what}`);
  if (!holds) process.exitCode = 1;
}

function toTableRow({ p50Ms, p99Ms, maxMs, failed }: Latency) {
  return { 'p50 ms': p50Ms.toFixed(2), 'p99 ms': p99Ms.toFixed(2), 'max ms': maxMs.toFixed(2), failed };
}

async function checkConnectionLoad(): Promise<void> {
  const { alone, beside, connections, aloneRssBytes, besideRssBytes } = await measureConnectionLoad(CONNECTION_LOAD);
  console.table({ alone: toTableRow(alone), [`beside ${connections} connections`]: toTableRow(beside) });
  const each = (besideRssBytes - aloneRssBytes) / connections / 1024;
  console.log(
    `memory ${(aloneRssBytes / MIB).toFixed(0)} MiB alone, ${(besideRssBytes / MIB).toFixed(0)} MiB beside them: ` +
      `${each.toFixed(1)} KiB a connection`,
  );
  claim('every connection of the crowd is open', connections >= CONNECTION_LOAD.idle + CONNECTION_LOAD.slow);
  claim('no request failed', alone.failed + beside.failed === 0);
  claim('p99 beside the crowd is under 50 ms', beside.p99Ms < 50);
  claim('a connection costs under 64 KiB', each < 64);
}

async function checkSlowReaders(): Promise<void> {
  const { idlePeakBytes, peakBytes, whole, seconds } = await measureSlowReaders({
    readers: 100,
    bodyBytes: 50_000_000,
    pauseMs: 20,
  });
  console.log(
    `100 slow readers of 50 MB: peak ${(peakBytes / MIB).toFixed(0)} MiB, ${(idlePeakBytes / MIB).toFixed(0)} MiB before, ` +
      `${seconds.toFixed(1)} s`,
  );
  claim('every body arrived whole', whole === 100);
  claim('the peak is under 400 MiB, of 5000 MB in all', peakBytes < 400 * MIB);
}

async function checkClientAborts(): Promise<void> {
  for (const place of ['queued', 'in a pause', 'in flight'] satisfies WaitingPlace[]) {
    const took = (await measureClientAborts(place, 50)).sort((a, b) => a - b);
    const [median = NaN, longest = NaN] = [took[25], took[49]];
    console.log(`a client that leaves ${place}: gone after ${median.toFixed(1)} ms, at most ${longest.toFixed(1)} ms`);
    claim('gone within 100 ms', longest < 100);
  }
}

const limit = process.report.getReport() as { userLimits?: { open_files?: { soft: number | string } } };
const descriptors = Number(limit.userLimits?.open_files?.soft ?? Infinity);
if (descriptors < MOST_DESCRIPTORS) {
  console.error(`${descriptors} open files are allowed here, ${MOST_DESCRIPTORS} are needed: ulimit -n`);
  process.exitCode = 1;
} else {
  await checkClientAborts();
  await checkSlowReaders();
  await checkConnectionLoad();
}
