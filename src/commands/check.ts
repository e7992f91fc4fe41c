/**
 * `bearer-sidecar check`: verifies the configuration, files, names, connections and certificates, and obtains one token. Prints one
 * line per step, with advice. The partner's API is not called without --probe, and no secret is printed. The steps are in check/.
 */
import { systemClock } from '../platform/clock.ts';
import { sizeThreadPool } from '../composition/thread-pool.ts';
import { loadConfig, type LoadOptions } from '../config/load/load.ts';
import { formatWarnings, toSingleLine } from '../config/load/problems.ts';
import { describeLoadFailure } from './load-failure.ts';
import { runChecks } from './check/run-checks.ts';
import { formatJsonReport, formatStep, formatSummary, hasNoFailure } from './check/report.ts';
import { formatStepForTerminal, formatSummaryForTerminal } from './check/report.ts';
import type { CheckStep } from './check/step-runner.ts';
import { ownProgramCommand } from './program-command.ts';
import { quoteForShell } from './shell-quote.ts';
import { terminalWidthOf, paintFor } from './terminal.ts';

export interface CheckOptions {
  /** One JSON document on stdout instead of lines. */
  readonly json: boolean;
  /** Path to GET as the sidecar would, with the token; undefined: no call. */
  readonly probe: string | undefined;
}

const CHECK_TIMEOUT_MS = 30_000;

/** @returns 0 when no step failed, 1 when one failed or `stop` was aborted, 2 for invalid settings */
export async function check(load: LoadOptions, { json, probe }: CheckOptions, stop: AbortSignal): Promise<number> {
  const loaded = loadConfig(load);
  if (!loaded.ok) {
    process.stderr.write(formatWarnings(loaded.warnings) + describeLoadFailure(load, loaded.problems));
    if (json) process.stdout.write(formatJsonReport(loaded.problems.map(toProblemStep), true));
    return 2;
  }
  sizeThreadPool(loaded.config);
  const late = new AbortController();
  const cancel = systemClock.after(CHECK_TIMEOUT_MS, () => late.abort());
  const signal = AbortSignal.any([stop, late.signal]);
  const steps: CheckStep[] = [];
  const report = chooseReportFormat(process.stdout);
  for await (const group of runChecks(loaded, probe, { clock: systemClock, stop, signal })) {
    steps.push(...group);
    if (!json) process.stdout.write(group.map(report.step).join(''));
  }
  cancel();
  const isFine = hasNoFailure(steps) && !stop.aborted;
  process.stdout.write(
    json
      ? formatJsonReport(steps, !stop.aborted)
      : report.summary(steps) + (stop.aborted ? '' : describeNextCommand(load, isFine)),
  );
  return isFine ? 0 : 1;
}

/** The command to run after this one, as its last line. */
function describeNextCommand({ env, file }: LoadOptions, isFine: boolean): string {
  const config = file === undefined ? '' : ` --config ${quoteForShell(toSingleLine(file))}`;
  const program = ownProgramCommand(env);
  const next = isFine ? `${program}${config}` : `${program} check${config}`;
  return `${isFine ? 'Next:' : 'Next, when that is corrected:'} ${paintFor(process.stdout)('name', next)}\n`;
}

function toProblemStep({ key, message }: { readonly key: string; readonly message: string }): CheckStep {
  return { step: 'configuration', target: key, outcome: 'fail', ms: 0, detail: message };
}

interface ReportFormat {
  readonly step: (step: CheckStep) => string;
  readonly summary: (steps: readonly CheckStep[]) => string;
}

function chooseReportFormat(stream: NodeJS.WriteStream): ReportFormat {
  const paint = paintFor(stream);
  // A dumb terminal has neither width nor symbols.
  if (!stream.isTTY || process.env.TERM === 'dumb')
    return { step: (step) => formatStep(step, paint), summary: formatSummary };
  return {
    step: (step) => formatStepForTerminal(step, terminalWidthOf(stream), paint),
    summary: (steps) => formatSummaryForTerminal(steps, paint),
  };
}
