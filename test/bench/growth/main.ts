/**
 * What a request costs as work grows: a full queue, idle connections, routes, label combinations. The CPU time of the real
 * process for one request should be the same at every size. Options as in ../speed/README.md.
 * Run: node test/bench/growth/main.ts --rounds 1 --seconds 1 --only queue
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { writeProgram } from '../../../tools/bundle/write-program.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { writeRobustness } from '../robustness-page.ts';
import { BodyVerifier } from '../speed/comparison.ts';
import { median } from '../speed/figures.ts';
import { readImageFlags } from '../../../tools/image/image-flags.ts';
import { describeLoad, describeMachine } from '../speed/machine.ts';
import { cpuSecondsOf, memoryOf } from '../speed/processes.ts';
import { installPrograms } from '../speed/programs.ts';
import type { RunningSubject } from '../speed/subjects.ts';
import { formatForTerminal } from '../speed/table.ts';
import { startUpstream } from '../speed/upstream.ts';
import { startWrk, runWrk, type WrkOptions } from '../speed/wrk.ts';
import { CURVES, type Curve } from './curves.ts';
import { FIGURES, writeGrowth, type GrowthRow } from './page.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    'warm-up': { type: 'string', default: '3' },
    only: { type: 'string' },
    'node-flags': { type: 'string' },
    main: { type: 'string' },
    write: { type: 'boolean', default: false },
    out: { type: 'string' },
  },
});

interface Sample {
  readonly requestsPerSecond: number;
  readonly cpuUs: number;
}

const ROOT = resolve(import.meta.dirname, '..', '..', '..');
const FIRST_RESPONSES_TIMEOUT_MS = 180_000;
/** Asking the upstream is a request, too: seldom enough not to show. */
const POLL_MS = 200;
const MIB = 1024 * 1024;
const seconds = Number(values.seconds);
const nodeFlags = values['node-flags']?.split(' ').filter((flag) => flag !== '') ?? readImageFlags();

process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143));
for (const line of installPrograms()) fail(line);
if (values.main === undefined) await writeProgram(ROOT, join(ROOT, 'dist'));
const main = resolve(values.main ?? join(ROOT, 'dist', 'main.js'));
const machine = describeMachine();
const folder = mkdtempSync(join(tmpdir(), 'growth-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
await using tokens = await startTokenServer();
await using comparison = await BodyVerifier.start();
const upstream = await startUpstream(folder, comparison.url);
const rows: GrowthRow[] = [];
for (const curve of CURVES.filter(({ name }) => values.only?.split(',').includes(name) ?? true)) {
  const steps = await measureCurve(curve).catch((error: unknown) => {
    fail(`${curve.name}: ${String(error)}`);
    return [];
  });
  console.log(`\n${curve.title} (load ${describeLoad()})\n${formatForTerminal([FIGURES, ...steps])}`);
  rows.push({ title: curve.title, steps });
}
await upstream.stop();
for (const altered of comparison.altered) fail(altered);
if (comparison.compared === 0) fail('no body was compared');
console.log(`bodies compared beside wrk: ${comparison.compared}, altered: ${comparison.altered.length}`);
const date = new Date().toISOString().slice(0, 10);
const text = writeGrowth(rows, { date, machine, rounds: values.rounds, seconds });
if (values.out !== undefined) writeFileSync(join(values.out, 'growth.md'), `${text}\n`);
else if (values.write) await writeRobustness('growth', text);

/** All sizes are up at once and take turns, so that what else the machine does meets all of them. */
async function measureCurve(curve: Curve): Promise<GrowthRow['steps']> {
  const place = { upstreamUrl: upstream.plainUrl, caFile: upstream.caFile, tokenUrl: tokens.url, folder };
  const steps: { size: number; running: RunningSubject; ask: WrkOptions; prefix: string; samples: Sample[] }[] = [];
  try {
    for (const size of curve.sizes) {
      const { subject, load, addBackgroundLoad, prefix = '' } = curve.prepare(size, { main, nodeFlags, folder });
      const running = await subject.start(place);
      steps.push({ size, running, ask: load, prefix, samples: [] });
      await addBackgroundLoad?.(running);
      const { failed } = await runWrk(running.url, load, Number(values['warm-up']));
      if (failed > 0) fail(`${curve.name} ${size}: ${failed} requests failed`);
    }
    for (let round = 0; round < Number(values.rounds); round++)
      for (const { size, running, ask, prefix, samples } of steps)
        samples.push(
          await comparison.verifyDuring(`${curve.name} ${size}`, running.url, () => takeSample(running, ask), prefix),
        );
    const first = steps[0]?.samples ?? [];
    return steps.map(({ size, running, samples }) => rowOf(size, running, samples, first));
  } finally {
    await Promise.all(steps.map(({ running }) => running.stop()));
  }
}

/**
 * From the moment when each connection has had a response, so that opening them does not count, nor what the last turn has left; requests are
 * counted by the upstream.
 */
async function takeSample(running: RunningSubject, ask: WrkOptions): Promise<Sample> {
  running.truncateLog();
  const pids = running.pids();
  const responsesAtFirst = await upstream.countResponses();
  const client = startWrk(running.url, ask);
  try {
    const until = performance.now() + FIRST_RESPONSES_TIMEOUT_MS;
    while ((await upstream.countResponses()) < responsesAtFirst + ask.connections) {
      if (performance.now() > until) throw new Error(`${ask.connections} requests got no response in time`);
      await sleep(POLL_MS);
    }
    const [startedAt, cpuBefore, responsesBefore] = [
      performance.now(),
      cpuSecondsOf(pids),
      await upstream.countResponses(),
    ];
    await sleep(seconds * 1000);
    const elapsedMs = performance.now() - startedAt;
    const cpuSeconds = cpuSecondsOf(pids) - cpuBefore;
    const requests = (await upstream.countResponses()) - responsesBefore;
    return { requestsPerSecond: (requests * 1000) / elapsedMs, cpuUs: (cpuSeconds * 1e6) / requests };
  } finally {
    await client.stop();
  }
}

function rowOf(size: number, running: RunningSubject, samples: readonly Sample[], first: readonly Sample[]): string[] {
  return [
    String(size),
    median(samples.map(({ requestsPerSecond }) => requestsPerSecond)).toFixed(0),
    median(samples.map(({ cpuUs }) => cpuUs)).toFixed(1),
    median(samples.map(({ cpuUs }, round) => cpuUs / (first[round]?.cpuUs ?? NaN))).toFixed(2),
    (memoryOf(running.pids(), 'VmHWM') / MIB).toFixed(0),
  ];
}

/** Goes on, but not as if nothing had been. */
function fail(line: string): void {
  process.exitCode = 1;
  console.error(line);
}
