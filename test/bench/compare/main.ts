/**
 * Compares the CPU time for a request of the working tree with that of a revision: both are built, started several times, and are under load at the
 * same time on the same core, so that other work of the machine slows both alike. Says faster, slower or the same, with the 95 % interval of the ratio.
 * README.md in ../speed says how to read it.
 * Run: npm run bench:compare -- 7ad1256 [--scenario get64,post64] [--starts 12] [--against-itself] [--slower-by 5] [--then-flags='--expose-gc']
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inMegabytes } from '../../../tools/image/sizes.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { BodyVerifier } from '../speed/comparison.ts';
import { readImageFlags } from '../../../tools/image/image-flags.ts';
import { DIRECT, withProxyRuns, type BenchmarkContext } from '../speed/measure.ts';
import { installPrograms } from '../speed/programs.ts';
import { SCENARIOS, type Scenario } from '../speed/scenarios.ts';
import { bareSubject, sidecarSubject } from '../speed/subjects.ts';
import { startUpstream } from '../speed/upstream.ts';
import { buildRevision, buildWorkingTree, slowDown } from './builds.ts';
import { evaluateRatios } from './verdict.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scenario: { type: 'string', default: 'get64,post64' },
    starts: { type: 'string', default: '12' },
    seconds: { type: 'string', default: '8' },
    'warm-up': { type: 'string', default: '5' },
    /** The revision is left out: two starts of the same build are compared. */
    'against-itself': { type: 'boolean', default: false },
    /** Flags for Node.js of the build that is compared with; default: the image's, as for the working tree. Without a revision it is the same build. */
    'then-flags': { type: 'string' },
    /** Per cent of the CPU time of a request that the working tree's build takes more, to try the comparison. */
    'slower-by': { type: 'string', default: '0' },
    json: { type: 'string' },
  },
});

const nodeFlags = readImageFlags();
const [revision] = positionals;
const thenFlags = values['then-flags']?.split(' ').filter((flag) => flag !== '') ?? nodeFlags;
if (revision === undefined && !values['against-itself'] && values['then-flags'] === undefined) {
  console.error('usage: npm run bench:compare -- REVISION [--scenario get64,post64] [--starts 12]');
  process.exit(2);
}
process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143));
for (const line of installPrograms()) fail(line);

const NAMES = { now: 'now', then: 'then', bare: 'bare' } as const;
const starts = Number(values.starts);
const scenarios = values.scenario.split(',').map(findScenario);
const seconds = Number(values.seconds);
const warmUpSeconds = Number(values['warm-up']);
/** `playOneStart` warms all up at the same time. */
const roundPlan = { rounds: 1, seconds, warmUpSeconds: 0 };
/** Iterations of a loop in each request, from which the number for `--slower-by` is computed. */
const TRIED_ITERATIONS = 50_000;

/** What one start has cost: microseconds of CPU for a request, and bytes. */
interface StartFigures {
  readonly now: number;
  readonly then: number;
  readonly bare: number;
  readonly nowPeak: number;
  readonly thenPeak: number;
}

const folder = mkdtempSync(join(tmpdir(), 'compare-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const own = await buildWorkingTree();
using then = revision === undefined || values['against-itself'] ? own : buildRevision(revision);
const all: Record<string, StartFigures[]> = {};
{
  await using tokens = await startTokenServer();
  await using bodyVerifier = await BodyVerifier.start();
  const upstream = await startUpstream(folder, bodyVerifier.url);
  using now = Number(values['slower-by']) > 0 ? slowDown(own, await findIterations()) : own;
  for (const scenario of scenarios) {
    const figures: StartFigures[] = [];
    for (let start = 0; start < starts; start++) {
      const context = contextFor(now.main, start);
      figures.push(await withProxyRuns(scenario, context, playOneStart));
      console.error(`${scenario.name} start ${String(start + 1)}: ${describeStart(figures.at(-1))}`);
    }
    all[scenario.name] = figures;
    console.log(report(scenario, figures));
  }
  await upstream.stop();
  for (const altered of bodyVerifier.altered) fail(altered);
  if (bodyVerifier.compared === 0) fail('no body was compared');
  console.log(
    `bodies compared beside wrk: ${String(bodyVerifier.compared)}, altered: ${String(bodyVerifier.altered.length)}`,
  );

  function contextFor(nowMain: string, start: number): BenchmarkContext {
    const both = [
      sidecarSubject({ name: NAMES.now, title: NAMES.now, main: nowMain, nodeFlags }),
      sidecarSubject({ name: NAMES.then, title: NAMES.then, main: then.main, nodeFlags: thenFlags }),
    ];
    return {
      // Neither build is always started first.
      subjects: [...(start % 2 === 0 ? both : both.toReversed()), bareSubject(nodeFlags)],
      ...{ upstream, bodyVerifier, roundPlan },
      startOptions: { tokenUrl: tokens.url, folder },
      onStartFailed: (name, fault) => fail(`${name} could not be started: ${fault.message}`),
    };
  }

  async function findIterations(): Promise<number> {
    const [scenario] = scenarios;
    if (scenario === undefined) throw new RangeError('no scenario');
    using tried = slowDown(own, TRIED_ITERATIONS);
    const context = contextFor(tried.main, 0);
    const figures = await withProxyRuns(scenario, context, playOneStart);
    const addedPart = figures.now / figures.then - 1;
    return Math.round((TRIED_ITERATIONS * Number(values['slower-by'])) / 100 / addedPart);
  }
}
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(all, null, 1)}\n`);

async function playOneStart(
  turns: Parameters<Parameters<typeof withProxyRuns<StartFigures>>[2]>[0],
): Promise<StartFigures> {
  const proxies = turns.filter(({ name }) => name !== DIRECT);
  await Promise.all(proxies.map((turn) => turn.warmUp(warmUpSeconds)));
  await Promise.all(proxies.map((turn) => turn.takeSample(seconds)));
  const measured = proxies.map((turn) => turn.getMeasurement());
  for (const { name, samples } of measured)
    if (samples.some(({ failed }) => failed > 0)) fail(`${name}: requests failed`);
  const of = (name: string) => measured.find((one) => one.name === name);
  const cpuUs = (name: string): number => of(name)?.samples[0]?.cpuUs ?? NaN;
  const peakBytes = (name: string): number => of(name)?.peakBytes ?? NaN;
  return {
    now: cpuUs(NAMES.now),
    then: cpuUs(NAMES.then),
    bare: cpuUs(NAMES.bare),
    nowPeak: peakBytes(NAMES.now),
    thenPeak: peakBytes(NAMES.then),
  };
}

function report(scenario: Scenario, figures: readonly StartFigures[]): string {
  const { kind, ratio, interval } = evaluateRatios(figures.map(({ now, then }) => now / then));
  const mean = (name: keyof StartFigures): number =>
    figures.reduce((sum, start) => sum + start[name], 0) / figures.length;
  const added = (mean('now') - mean('bare')) / (mean('then') - mean('bare'));
  return [
    `\n${scenario.title}: ${kind}`,
    `  CPU for a request, of ${revision ?? 'itself'}: ${ratio.toFixed(3)} (95 %: ${interval.map((end) => end.toFixed(3)).join(' to ')}), ${String(figures.length)} starts`,
    `  µs: now ${mean('now').toFixed(1)}, then ${mean('then').toFixed(1)}, bare ${mean('bare').toFixed(1)}; added to bare: ${added.toFixed(2)} of then's`,
    `  peak, mean of the starts: now ${inMegabytes(mean('nowPeak'))}, then ${inMegabytes(mean('thenPeak'))}`,
  ].join('\n');
}

function describeStart(start: StartFigures | undefined): string {
  if (start === undefined) return '';
  return `now ${start.now.toFixed(1)}, then ${start.then.toFixed(1)}, bare ${start.bare.toFixed(1)} µs`;
}

/** @throws RangeError for an unknown name */
function findScenario(name: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  if (found === undefined) throw new RangeError(`${name} is none of ${SCENARIOS.map((one) => one.name).join(', ')}`);
  return found;
}

function fail(line: string): void {
  process.exitCode = 1;
  console.error(line);
}
