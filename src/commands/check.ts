/**
 * `bearer-sidecar check`: would it work, and if not, why? From the configuration over files, names, connections and certificates to
 * one token and what it is good for: a line for each step, with what to do next. No call of the partner's API is made unless a path to
 * probe is given, and no secret is printed. What each step looks at is told in check/.
 */
import { styleText } from 'node:util';
import { systemClock } from '../clock.ts';
import { loadConfig, type LoadOptions } from '../config/load.ts';
import { formatProblems, formatWarnings } from '../config/problems.ts';
import { examine } from './check/examine.ts';
import { formatDocument, formatStep, formatSummary, isFine } from './check/report.ts';
import type { Paint } from './check/report.ts';
import type { Outcome, Step } from './check/walk.ts';

export interface CheckOptions {
  /** One JSON document on stdout instead of lines. */
  readonly json: boolean;
  /** Path to GET through the sidecar's own way, with the token; undefined: nothing is called. */
  readonly probe: string | undefined;
}

/** The whole check ends by then, whatever hangs. */
const LONGEST_CHECK_MS = 30_000;

/** @returns 0 when nothing stands in the way, 1 when something does or `stop` came first, 2 for invalid settings */
export async function check(load: LoadOptions, { json, probe }: CheckOptions, stop: AbortSignal): Promise<number> {
  const loaded = loadConfig(load);
  if (!loaded.ok) {
    process.stderr.write(formatWarnings(loaded.warnings) + formatProblems(loaded.problems));
    if (json) process.stdout.write(formatDocument(loaded.problems.map(problemStep), true));
    return 2;
  }
  const late = new AbortController();
  const cancel = systemClock.after(LONGEST_CHECK_MS, () => late.abort());
  const signal = AbortSignal.any([stop, late.signal]);
  const steps: Step[] = [];
  for await (const group of examine(loaded, probe, { clock: systemClock, stop, signal })) {
    steps.push(...group);
    if (!json) process.stdout.write(group.map((step) => formatStep(step, paint)).join(''));
  }
  cancel();
  process.stdout.write(json ? formatDocument(steps, !stop.aborted) : formatSummary(steps));
  return isFine(steps) && !stop.aborted ? 0 : 1;
}

function problemStep({ key, message }: { readonly key: string; readonly message: string }): Step {
  return { step: 'configuration', target: key, outcome: 'fail', ms: 0, detail: message };
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red', skip: 'dim' } as const satisfies Record<Outcome, string>;

/** On a terminal only, and not where NO_COLOR is set: Node looks at both. */
const paint: Paint = (outcome, text) => styleText(COLOURS[outcome], text, { stream: process.stdout });
