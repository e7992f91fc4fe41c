/**
 * Scenario files, and the cases that are played of each. The format is described in README.md.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { HINT_STYLES, type HintStyle } from './hints.ts';
import { create, type LimiterRule } from './limiters.ts';
import { type LoadSpec, nameLoad } from './load.ts';
import { numberFrom, Reader } from './reader.ts';
import { parseRule } from './rule-reader.ts';
import type { RunConditions, Spread } from './world.ts';

/** One file: a limiter, and under which loads, hints and numbers of replicas it is played. */
export interface Scenario {
  /** The file's name without its ending. */
  readonly name: string;
  readonly title: string;
  readonly limiter: LimiterRule;
  readonly status: number | undefined;
  readonly loads: readonly LoadSpec[];
  readonly hints: readonly HintStyle[];
  readonly replicas: readonly number[];
  readonly durationMs: number;
  readonly startsMs: number;
  readonly latencyMs: Spread;
  readonly serviceMs: Spread;
}

/** One set of conditions of a scenario. */
export interface Case {
  readonly scenario: string;
  readonly title: string;
  readonly load: string;
  readonly conditions: RunConditions;
}

const FOLDER = new URL('scenarios/', import.meta.url);

const KINDS: readonly LimiterRule['kind'][] = [
  'fixed-window',
  'first-call-window',
  'sliding-log',
  'sliding-counter',
  'slotted-window',
  'token-bucket',
  'gcra',
  'bulk-refill',
  'concurrency',
  'all-of',
  'steps',
  'tenant',
  'weighted',
  'nodes',
  'ban',
];

/** The scenarios that come with the benchmark, by their limiters. */
export function readAllScenarios(): Scenario[] {
  const names = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
  const scenarios = names.map((name) => readScenario(new URL(name, FOLDER)));
  const rank = ({ limiter }: Scenario): number => KINDS.indexOf(limiter.kind);
  return scenarios.toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name, 'en', { numeric: true }));
}

/** @param nameOrFile the name of one that comes with the benchmark, or the path of a file */
export function findScenario(nameOrFile: string): Scenario {
  if (/^[\w-]+$/.test(nameOrFile)) return readScenario(new URL(`${nameOrFile}.json`, FOLDER));
  return readScenario(nameOrFile);
}

function readScenario(file: string | URL): Scenario {
  const text = readFileSync(file, 'utf8');
  const name = basename(typeof file === 'string' ? file : file.pathname, '.json');
  try {
    return parseScenario(name, JSON.parse(text));
  } catch (error) {
    throw new Error(`scenario ${name}: ${(error as Error).message}`, { cause: error });
  }
}

const DEFAULT_LATENCY: Spread = { base: 20, jitter: 20 };
const DEFAULT_SERVICE: Spread = { base: 10, jitter: 0 };

/** @throws Error that names what is wrong */
export function parseScenario(name: string, json: unknown): Scenario {
  const entries = new Reader(json, 'the scenario');
  const scenario: Scenario = {
    name,
    title: entries.text('title'),
    limiter: parseRule(entries.take('limiter')),
    status: entries.optional('status', (value) => numberFrom(value, 'status')),
    loads: entries.list('loads', [0.3, 0.8, 1.5, 'on-off', 'at-once'], parseLoad),
    hints: entries.list('hints', ['none'], parseHint),
    replicas: entries.list('replicas', [1], (value) => numberFrom(value, 'replicas')),
    durationMs: entries.number('durationMs'),
    startsMs: entries.optional('startsMs', (value) => numberFrom(value, 'startsMs')) ?? 0,
    latencyMs: entries.optional('latencyMs', parseSpread) ?? DEFAULT_LATENCY,
    serviceMs: entries.optional('serviceMs', parseSpread) ?? DEFAULT_SERVICE,
  };
  entries.end();
  // Throws for what only the limiter itself knows to be wrong.
  create({ limiter: scenario.limiter }).model.rateAt(0);
  return scenario;
}

/** The load at which everything else is compared: more than the limiter admits. */
const CENTRE_LOAD = 1.5;

/**
 * The cases of a scenario. Not all combinations: each load with the first hint style and the first number of replicas, and each
 * other hint style and number of replicas at load 1.5, or the first if that is not among them.
 */
export function listCases(scenario: Scenario): Case[] {
  const [firstHint] = scenario.hints;
  const [firstReplicas] = scenario.replicas;
  const centre = scenario.loads.includes(CENTRE_LOAD) ? CENTRE_LOAD : scenario.loads[0];
  if (firstHint === undefined || firstReplicas === undefined || centre === undefined) return [];
  return [
    ...scenario.loads.map((load) => createCase(scenario, load, firstHint, firstReplicas)),
    ...scenario.hints.slice(1).map((hint) => createCase(scenario, centre, hint, firstReplicas)),
    ...scenario.replicas.slice(1).map((replicas) => createCase(scenario, centre, firstHint, replicas)),
  ];
}

/** Every combination. */
export function listAllCases(scenario: Scenario): Case[] {
  return scenario.loads.flatMap((load) =>
    scenario.hints.flatMap((hint) => scenario.replicas.map((replicas) => createCase(scenario, load, hint, replicas))),
  );
}

function createCase(scenario: Scenario, load: LoadSpec, hint: HintStyle, replicas: number): Case {
  const { name, title, limiter, status, durationMs, startsMs, latencyMs, serviceMs } = scenario;
  const conditions = { limiter, hint, load, replicas, durationMs, startsMs, latencyMs, serviceMs };
  return {
    scenario: name,
    title,
    load: nameLoad(load),
    conditions: status === undefined ? conditions : { ...conditions, status },
  };
}

function parseSpread(value: unknown): Spread {
  const entries = new Reader(value, 'a spread');
  const spread = { base: entries.number('base'), jitter: entries.number('jitter') };
  entries.end();
  return spread;
}

function parseHint(value: unknown): HintStyle {
  const hint = HINT_STYLES.find((style) => style === value);
  if (hint === undefined) throw new Error(`a hint must be one of ${HINT_STYLES.join(', ')}`);
  return hint;
}

function parseLoad(value: unknown): LoadSpec {
  if (typeof value === 'number') return numberFrom(value, 'loads');
  if (value === 'on-off' || value === 'at-once') return value;
  const entries = new Reader(value, 'a load');
  const perSecond = entries.optional('perSecond', (rate) => numberFrom(rate, 'perSecond'));
  const calls = entries.optional('calls', (count) => numberFrom(count, 'calls'));
  const clients = entries.optional('clients', (count) => numberFrom(count, 'clients'));
  let load: LoadSpec;
  if (perSecond !== undefined) load = { perSecond };
  else if (clients !== undefined) load = { clients, thinkMs: entries.number('thinkMs') };
  else if (calls !== undefined) load = { calls, everyMs: entries.number('everyMs') };
  else {
    const [onMs, on, offMs, off] = ['onMs', 'on', 'offMs', 'off'].map((name) => entries.number(name));
    load = { onMs: onMs ?? 0, on: on ?? 0, offMs: offMs ?? 0, off: off ?? 0 };
  }
  entries.end();
  return load;
}
