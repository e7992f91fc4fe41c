/** How a check is printed: as lines, on a terminal with symbols and wrapped texts, or as one JSON document. Also masks secrets in steps. */
import { toSingleLine } from '../../config/load/problems.ts';
import type { Redact } from '../../platform/secret-redaction.ts';
import { wrapText, type Paint } from '../terminal.ts';
import type { CheckOutcome, CheckStep } from './step-runner.ts';

/** On a terminal `symbol` stands at a step, and `counted` after a count. */
const OUTCOMES = {
  ok: { label: 'ok', symbol: '✔', counted: 'ok', role: 'good' },
  warn: { label: 'warn', symbol: '!', counted: 'to review', role: 'warning' },
  fail: { label: 'FAIL', symbol: '✘', counted: 'failed', role: 'bad' },
  skip: { label: 'skip', symbol: '-', counted: 'skipped', role: 'quiet' },
} as const satisfies Readonly<Record<CheckOutcome, Record<'label' | 'symbol' | 'counted' | 'role', string>>>;

const STEP_WIDTH = 13;
const TARGET_WIDTH = 21;
const TIME_WIDTH = 8;
/** The column of the texts on a wide terminal. */
const DETAIL_INDENT = 2 + STEP_WIDTH + 1 + TARGET_WIDTH + 1 + TIME_WIDTH + 2;
const MIN_DETAIL_WIDTH = 40;
const NARROW_INDENT = 4;

/** One line: label, step, target, time, finding, and the advice after an arrow. Only the label is coloured. */
export function formatStep({ step, target, outcome, ms, detail, advice }: CheckStep, paint: Paint): string {
  const { label, role } = OUTCOMES[outcome];
  const columns = [step.padEnd(STEP_WIDTH), target.padEnd(TARGET_WIDTH), formatTime(ms).padStart(TIME_WIDTH + 1)];
  const next = advice === undefined ? '' : ` -> ${advice}`;
  return `${paint(role, label.padEnd(4))}  ${columns.join(' ')}  ${toSingleLine(detail + next)}\n`;
}

export function formatSummary(steps: readonly CheckStep[]): string {
  const counts = (['fail', 'warn', 'ok', 'skip'] as const).map(
    (outcome) => `${countSteps(steps, outcome)} ${OUTCOMES[outcome].label}`,
  );
  return `${counts.join(', ')}\n`;
}

export function formatStepForTerminal(
  { step, target, outcome, ms, detail, advice }: CheckStep,
  columns: number,
  paint: Paint,
): string {
  const { symbol, role } = OUTCOMES[outcome];
  const time = formatTime(ms).padStart(TIME_WIDTH);
  const named = [step.padEnd(STEP_WIDTH), target.padEnd(TARGET_WIDTH), paint('quiet', time)];
  const head = `${paint(role, symbol)} ${named.join(' ')}`;
  // A word that does not fit beside the columns moves the text to its own lines.
  const longest = Math.max(...`${detail} ${advice ?? ''}`.split(' ').map((word) => word.length));
  const isBeside = columns - DETAIL_INDENT >= Math.max(MIN_DETAIL_WIDTH, longest);
  const indent = ' '.repeat(isBeside ? DETAIL_INDENT : NARROW_INDENT);
  const room = columns - indent.length;
  const words = wrapText(toSingleLine(detail), room).map((line) => (outcome === 'skip' ? paint('quiet', line) : line));
  const next = advice === undefined ? [] : wrapText(`→ ${toSingleLine(advice)}`, room).map((line) => paint(role, line));
  const [first = '', ...rest] = [...words, ...next];
  const lines = isBeside
    ? [`${head}  ${first}`, ...rest.map((line) => indent + line)]
    : [head, ...[first, ...rest].map((line) => indent + line)];
  return lines.map((line) => `${line}\n`).join('');
}

export function formatSummaryForTerminal(steps: readonly CheckStep[], paint: Paint): string {
  const counts = (Object.keys(OUTCOMES) as CheckOutcome[]).flatMap((outcome) => {
    const count = countSteps(steps, outcome);
    return count === 0 ? [] : [paint(OUTCOMES[outcome].role, `${count} ${OUTCOMES[outcome].counted}`)];
  });
  return `\n${counts.join(', ')}\n`;
}

function formatTime(ms: number): string {
  return ms === 0 ? '' : `${ms < 10 ? ms.toFixed(1) : String(Math.round(ms))} ms`;
}

function countSteps(steps: readonly CheckStep[], outcome: CheckOutcome): number {
  return steps.filter((step) => step.outcome === outcome).length;
}

/** One JSON document; `advice` is null when there is none. */
export function formatJsonReport(steps: readonly CheckStep[], isWhole: boolean): string {
  const written = steps.map(({ step, target, outcome, ms, detail, advice = null }) => {
    return { step, target, outcome, ms, detail, advice };
  });
  return `${JSON.stringify({ ok: isWhole && hasNoFailure(steps), steps: written }, null, 2)}\n`;
}

export function hasNoFailure(steps: readonly CheckStep[]): boolean {
  return steps.every(({ outcome }) => outcome !== 'fail');
}

/** The steps with the secrets masked. Their texts hold no secret of ours, but some quote what a server has sent, or a part of it. */
export function redactSteps(steps: readonly CheckStep[], redact: Redact): readonly CheckStep[] {
  return steps.map((step) => ({ ...step, detail: redact(step.detail), advice: step.advice && redact(step.advice) }));
}
