/** The report of check on a terminal: wrapped to the width, with every word. */
import { describe, expect, test } from 'vitest';
import { formatStepForTerminal, formatSummaryForTerminal } from '../../../src/commands/check/report.ts';
import type { CheckStep } from '../../../src/commands/check/step-runner.ts';
import { paintNothing, wrapText } from '../../../src/commands/terminal.ts';

const STEP: CheckStep = {
  step: 'connect',
  target: 'token endpoint',
  outcome: 'fail',
  ms: 3.25,
  detail: '127.0.0.1:1 refused the connection (ECONNREFUSED) after 3 ms',
  advice: 'nothing listens there: check host and port in auth.url (SIDECAR_AUTH_URL), and that the service is up',
};

describe.each([[200], [100], [80], [40]])('at %i columns', (columns) => {
  const lines = formatStepForTerminal(STEP, columns, paintNothing).trimEnd().split('\n');
  test('no line is too wide', () => {
    expect(lines.filter((line) => line.length > Math.max(columns, 48))).toEqual([]);
  });
  test('contains every word in order', () => {
    const words = lines.join(' ').split(/ +/).join(' ');
    expect(words).toContain(`✘ connect token endpoint`);
    expect(words).toContain(STEP.detail);
    expect(words).toContain(`→ ${STEP.advice ?? ''}`);
  });
  test('advice starts a new line', () => {
    expect(lines.filter((line) => /^ +→ nothing/.test(line))).toHaveLength(1);
  });
});

test('a word that does not fit beside the columns moves the text to its own lines', () => {
  const path = `/run/secrets/${'long-'.repeat(10)}name`;
  const text = formatStepForTerminal({ ...STEP, detail: `${path}, mode 0600` }, 100, paintNothing);
  expect(text).toContain(`\n    ${path}, mode 0600\n`);
});

test('escapes control characters', () => {
  const nasty = '\u001b[2J\r\n';
  expect(formatStepForTerminal({ ...STEP, detail: nasty, advice: nasty }, 100, paintNothing)).not.toMatch(
    /[^\P{Cc}\n]/u,
  );
});

test('the summary counts outcomes', () => {
  const steps = (['ok', 'ok', 'fail', 'skip'] as const).map((outcome): CheckStep => ({ ...STEP, outcome }));
  expect(formatSummaryForTerminal(steps, paintNothing)).toBe('\n2 ok, 1 failed, 1 skipped\n');
  expect(formatSummaryForTerminal(steps.slice(0, 1), paintNothing)).toBe('\n1 ok\n');
});

test.each([
  ['a b c', 3, ['a b', 'c']],
  ['abcdef g', 3, ['abcdef', 'g']],
  ['', 3, ['']],
  ['abc def', 7, ['abc def']],
  ['abc def', 6, ['abc', 'def']],
])('%j in %i columns', (text, width, lines) => {
  expect(wrapText(text, width)).toEqual(lines);
});
