/** How a check is printed where no terminal is: one line for each step, or one JSON document. Also masks secrets in steps. */
import { createRedact } from '../../platform/secret-redaction.ts';
import type { Redact } from '../../platform/secret-redaction.ts';
import { toSingleLine } from '../../config/load/problems.ts';
import type { CheckOutcome, CheckStep } from './step-runner.ts';

/** Colours the mark of an outcome. */
export type PaintOutcome = (outcome: CheckOutcome, text: string) => string;

const OUTCOME_LABELS: Readonly<Record<CheckOutcome, string>> = { ok: 'ok  ', warn: 'warn', fail: 'FAIL', skip: 'skip' };
const STEP_WIDTH = 13;
const TARGET_WIDTH = 21;
const TIME_WIDTH = 9;

/** One line: mark, step, target, time, finding, and the advice after an arrow. */
export function formatStep(step: CheckStep, paint: PaintOutcome): string {
  const time = step.ms === 0 ? '' : `${step.ms < 10 ? step.ms.toFixed(1) : String(Math.round(step.ms))} ms`;
  const columns = [step.step.padEnd(STEP_WIDTH), step.target.padEnd(TARGET_WIDTH), time.padStart(TIME_WIDTH)];
  const advice = step.advice === undefined ? '' : ` -> ${step.advice}`;
  return `${paint(step.outcome, OUTCOME_LABELS[step.outcome])}  ${columns.join(' ')}  ${toSingleLine(step.detail + advice)}\n`;
}

/** The last line. */
export function formatSummary(steps: readonly CheckStep[]): string {
  const count = (outcome: CheckOutcome): number => steps.filter((step) => step.outcome === outcome).length;
  const words = (['fail', 'warn', 'ok', 'skip'] as const).map(
    (outcome) => `${count(outcome)} ${OUTCOME_LABELS[outcome].trim()}`,
  );
  return `${words.join(', ')}\n`;
}

/** One JSON document; `advice` is null when there is none. */
export function formatJsonReport(steps: readonly CheckStep[], isWhole: boolean): string {
  const written = steps.map(({ step, target, outcome, ms, detail, advice = null }) => {
    return { step, target, outcome, ms, detail, advice };
  });
  return `${JSON.stringify({ ok: isWhole && hasNoFailure(steps), steps: written }, null, 2)}\n`;
}

/** Whether no step failed. */
export function hasNoFailure(steps: readonly CheckStep[]): boolean {
  return steps.every(({ outcome }) => outcome !== 'fail');
}

/**
 * The steps with the secrets masked. Their texts hold no secret of ours, but some quote what a server has sent, or a part of it.
 * @param maskTokens default: no token is known
 */
export function redactSteps(
  steps: readonly CheckStep[],
  secrets: Iterable<string>,
  maskTokens: Redact = (text) => text,
): readonly CheckStep[] {
  const redactWhole = createRedact([...secrets]);
  const redact: Redact = (text) => maskTokens(redactWhole(text));
  return steps.map(({ advice, ...step }) => {
    const masked = { ...step, detail: redact(step.detail) };
    return advice === undefined ? masked : { ...masked, advice: redact(advice) };
  });
}
