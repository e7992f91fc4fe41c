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
import * as report from './check/report.ts';
import type { CheckStep } from './check/step-runner.ts';
import { ownProgramCommand, quoteForShell } from './program-command.ts';
import { terminalWidthOf, paintFor } from './terminal.ts';

const CHECK_TIMEOUT_MS = 30_000;

/**
 * @param probe path to GET as the sidecar would, with the token; undefined: no call
 * @returns 0 when no step failed, 1 when one failed or `stop` was aborted, 2 for invalid settings
 */
export async function check(
  load: LoadOptions,
  { json, probe }: { json: boolean; probe: string | undefined },
  stop: AbortSignal,
): Promise<number> {
  const loaded = loadConfig(load);
  if (!loaded.ok) {
    process.stderr.write(formatWarnings(loaded.warnings) + describeLoadFailure(load, loaded.problems));
    const steps = loaded.problems.map(({ key, message }): CheckStep => {
      return { step: 'configuration', target: key, outcome: 'fail', ms: 0, detail: message };
    });
    if (json) process.stdout.write(report.formatJsonReport(steps, true));
    return 2;
  }
  sizeThreadPool(loaded.config);
  const late = new AbortController();
  const cancel = systemClock.after(CHECK_TIMEOUT_MS, () => late.abort());
  const signal = AbortSignal.any([stop, late.signal]);
  const steps: CheckStep[] = [];
  const { stdout } = process;
  const paint = paintFor(stdout);
  // A dumb terminal has neither width nor symbols.
  const isPlain = !stdout.isTTY || process.env.TERM === 'dumb';
  const formatStep = (step: CheckStep): string =>
    isPlain ? report.formatStep(step, paint) : report.formatStepForTerminal(step, terminalWidthOf(stdout), paint);
  for await (const group of runChecks(loaded, probe, { clock: systemClock, stop, signal })) {
    steps.push(...group);
    if (!json) process.stdout.write(group.map(formatStep).join(''));
  }
  cancel();
  const isFine = report.hasNoFailure(steps) && !stop.aborted;
  const summary = isPlain ? report.formatSummary(steps) : report.formatSummaryForTerminal(steps, paint);
  const next = stop.aborted ? '' : describeNextCommand(load, isFine);
  stdout.write(json ? report.formatJsonReport(steps, !stop.aborted) : summary + next);
  return isFine ? 0 : 1;
}

/** The command to run after this one, as its last line. */
function describeNextCommand({ env, file }: LoadOptions, isFine: boolean): string {
  const config = file === undefined ? '' : ` --config ${quoteForShell(toSingleLine(file))}`;
  const program = ownProgramCommand(env);
  const next = isFine ? `${program}${config}` : `${program} check${config}`;
  return `${isFine ? 'Next:' : 'Next, when that is corrected:'} ${paintFor(process.stdout)('name', next)}\n`;
}
