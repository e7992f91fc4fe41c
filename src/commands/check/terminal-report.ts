/** How a check is printed on a terminal: a coloured symbol for each step, texts wrapped to the width, advice on its own lines. */
import { toSingleLine } from '../../config/load/problems.ts';
import { wrapText } from '../terminal.ts';
import type { Paint, TextRole } from '../terminal.ts';
import type { CheckOutcome, CheckStep } from './step-runner.ts';

export const OUTCOME_STYLES = {
  ok: { symbol: '✔', role: 'good' },
  warn: { symbol: '!', role: 'warning' },
  fail: { symbol: '✘', role: 'bad' },
  skip: { symbol: '-', role: 'quiet' },
} as const satisfies Record<CheckOutcome, { readonly symbol: string; readonly role: TextRole }>;

const STEP_WIDTH = 13;
const TARGET_WIDTH = 21;
const TIME_WIDTH = 8;
/** The column of the texts on a wide terminal. */
const DETAIL_INDENT = 2 + STEP_WIDTH + 1 + TARGET_WIDTH + 1 + TIME_WIDTH + 2;
const MIN_DETAIL_WIDTH = 40;
const NARROW_INDENT = 4;

/** The lines of one step. @param columns the width of the terminal */
export function formatStepForTerminal(
  { step, target, outcome, ms, detail, advice }: CheckStep,
  columns: number,
  paint: Paint,
): string {
  const { symbol, role } = OUTCOME_STYLES[outcome];
  const time = ms === 0 ? '' : `${ms < 10 ? ms.toFixed(1) : String(Math.round(ms))} ms`;
  const named = [step.padEnd(STEP_WIDTH), target.padEnd(TARGET_WIDTH), paint('quiet', time.padStart(TIME_WIDTH))];
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

/** The last line, after a blank one. */
export function formatSummaryForTerminal(steps: readonly CheckStep[], paint: Paint): string {
  const counted = (Object.keys(OUTCOME_STYLES) as CheckOutcome[]).flatMap((outcome) => {
    const count = steps.filter((step) => step.outcome === outcome).length;
    return count === 0
      ? []
      : [paint(OUTCOME_STYLES[outcome].role, `${count} ${outcome === 'skip' ? 'skipped' : OUTCOME_LABELS[outcome]}`)];
  });
  return `\n${counted.join(', ')}\n`;
}

const OUTCOME_LABELS = { ok: 'ok', warn: 'to review', fail: 'failed' } as const;
