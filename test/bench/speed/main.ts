/**
 * The speed benchmark: the sidecar beside other proxies and a bare pass-through. README.md in this folder describes options and
 * figures.
 * Run: node test/bench/speed/main.ts --rounds 1 --seconds 1 --only sidecar,bare,nginx --scenario get64
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { writeProgram } from '../../../tools/bundle/write-program.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { BodyVerifier } from './comparison.ts';
import { mergeStarts, summarize } from './figures.ts';
import { evaluateGoals, summarizeStarts, type ScenarioResult, type Results } from './goals.ts';
import { readImageFlags } from '../../../tools/image/image-flags.ts';
import { describeLoad, describeMachine } from './machine.ts';
import { runStarts, type BenchmarkContext } from './measure.ts';
import { runOpenLoop } from './open-loop.ts';
import { drawPlot } from './plot.ts';
import { installPrograms } from './programs.ts';
import { writeReport } from './report.ts';
import { SCENARIOS } from './scenarios.ts';
import { listPeers, sidecarSubject, type BenchmarkSubject } from './subjects.ts';
import { formatForTerminal, tabulate, tabulateOpenLoop, tabulateStarts, tabulateGoals } from './table.ts';
import { startUpstream } from './upstream.ts';

const { values } = parseArgs({
  options: {
    starts: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '2' },
    // After two seconds V8 has not compiled all that is hot: a proxy with more code is then slower than later.
    'warm-up': { type: 'string', default: '6' },
    only: { type: 'string' },
    scenario: { type: 'string' },
    'node-flags': { type: 'string' },
    main: { type: 'string' },
    beside: { type: 'string', multiple: true, default: [] },
    write: { type: 'boolean', default: false },
    out: { type: 'string' },
    json: { type: 'string' },
  },
});

const ROOT = resolve(import.meta.dirname, '..', '..', '..');
const MAIN = resolve(values.main ?? join(ROOT, 'dist', 'main.js'));
const OPEN_LOOP = 'open64';
const YARDSTICK = 'bare';
const nodeFlags = values['node-flags']?.split(' ').filter((flag) => flag !== '') ?? readImageFlags();
const out = values.out ?? (values.write ? join(ROOT, 'docs', 'benchmarks') : undefined);
const pace = {
  starts: whole('--starts', values.starts),
  rounds: Number(values.rounds),
  seconds: whole('--seconds', values.seconds),
  warmUpSeconds: whole('--warm-up', values['warm-up']),
};

const faults: string[] = [];

process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143));
for (const line of installPrograms()) fail(line);
if (values.main === undefined) await writeProgram(ROOT, join(ROOT, 'dist'));
const machine = describeMachine();
const scenarios = selectByName([...SCENARIOS, { name: OPEN_LOOP }], values.scenario).map(({ name }) => name);
const subjects = selectByName(listSubjects(), values.only);
const results = await measure();
console.log(`\n${formatForTerminal(tabulateGoals(evaluateGoals(results)))}`);
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ machine, ...results }, null, 1)}\n`);
if (out !== undefined) {
  const date = new Date().toISOString().slice(0, 10);
  writeFileSync(join(out, 'speed.md'), writeReport(results, { ...pace, date, machine, nodeFlags, faults }));
  writeFileSync(join(out, 'speed.svg'), drawPlot(results.played));
}

async function measure(): Promise<Results> {
  const folder = mkdtempSync(join(tmpdir(), 'speed-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  await using tokens = await startTokenServer();
  await using comparison = await BodyVerifier.start();
  const upstream = await startUpstream(folder, comparison.url);
  const reportFailedStart = (name: string, fault: Error): void =>
    fail(`${name} could not be started: ${fault.message}`);
  const stage: BenchmarkContext = {
    subjects,
    upstream,
    bodyVerifier: comparison,
    startOptions: { tokenUrl: tokens.url, folder },
    roundPlan: pace,
    onStartFailed: reportFailedStart,
  };
  const played: ScenarioResult[] = [];
  for (const scenario of SCENARIOS.filter(({ name }) => scenarios.includes(name))) {
    const measured = await runStarts(scenario, stage, pace.starts).catch((error: unknown) => {
      fail(`${scenario.title}: ${String(error)}`);
      return [];
    });
    const figures = summarize(mergeStarts(measured), YARDSTICK);
    played.push({ scenario: scenario.name, title: scenario.title, figures });
    console.log(`\n${scenario.title} (load ${describeLoad()})`);
    console.log(formatForTerminal(tabulate(figures, ({ name }) => name)));
  }
  console.log(`\n${formatForTerminal(tabulateStarts(summarizeStarts(played)))}`);
  const openLoop = scenarios.includes(OPEN_LOOP) ? await runOpenLoop(stage).catch(reportOpenLoopFailure) : [];
  if (openLoop.length > 0) console.log(`\nGET at a constant rate\n${formatForTerminal(tabulateOpenLoop(openLoop))}`);
  await upstream.stop();
  for (const altered of comparison.altered) fail(altered);
  if (comparison.compared === 0) fail('no body was compared');
  console.log(`bodies compared beside wrk: ${comparison.compared}, altered: ${comparison.altered.length}`);
  return { played, openLoop };
}

function reportOpenLoopFailure(error: unknown): [] {
  fail(`open loop: ${String(error)}`);
  return [];
}

function listSubjects(): readonly BenchmarkSubject[] {
  const terms = { main: MAIN, nodeFlags };
  const quiet = { SIDECAR_LOG_LEVEL: 'warn' };
  return [
    sidecarSubject({ ...terms, name: 'sidecar', title: 'bearer-sidecar' }),
    sidecarSubject({ ...terms, name: 'sidecar-quiet', title: 'bearer-sidecar, access log off', env: quiet }),
    ...(nodeFlags.length === 0
      ? []
      : [sidecarSubject({ ...terms, name: 'sidecar-unset', title: 'bearer-sidecar, no flags', nodeFlags: [] })]),
    ...values.beside.map((option) => {
      const [name = '', main = ''] = option.split('=');
      return sidecarSubject({ ...terms, name, title: `bearer-sidecar, ${name}`, main: resolve(main) });
    }),
    ...listPeers(nodeFlags),
  ];
}

/** @throws RangeError for a name that there is not */
function selectByName<T extends { readonly name: string }>(all: readonly T[], names: string | undefined): readonly T[] {
  if (names === undefined) return all;
  return names.split(',').map((name) => {
    const found = all.find((one) => one.name === name);
    if (found === undefined) throw new RangeError(`${name} is none of ${all.map((one) => one.name).join(', ')}`);
    return found;
  });
}

/** Goes on, but not as if nothing had been. */
function fail(line: string): void {
  process.exitCode = 1;
  faults.push(line);
  console.error(line);
}

/** Wrk takes whole seconds only. */
function whole(option: string, value: string): number {
  if (!/^\d+$/.test(value)) throw new RangeError(`${option} expects whole seconds, not ${value}`);
  return Number(value);
}
