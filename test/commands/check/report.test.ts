/** How a check is printed. */
import { expect, test } from 'vitest';
import { formatJsonReport, formatStep, formatSummary, redactSteps } from '../../../src/commands/check/report.ts';
import type { CheckStep } from '../../../src/commands/check/step-runner.ts';

const step = (changes: Partial<CheckStep> = {}): CheckStep => ({
  step: 'tls',
  target: 'upstream',
  outcome: 'fail',
  ms: 12.34,
  detail: 'it broke',
  advice: 'mend it',
  ...changes,
});
const plain = (_: unknown, text: string): string => text;

test('a line has mark, step, target, time, what was found and what to do', () => {
  expect(formatStep(step(), plain)).toMatch(/^FAIL {2}tls +upstream +12 ms {2}it broke -> mend it\n$/);
  expect(formatStep(step({ ms: 0 }), plain)).not.toContain('ms');
});

test('what a server has said cannot begin a new line or move the cursor', () => {
  const line = formatStep(step({ detail: 'CN=evil\nok  everything\u001b[2K\u202e' }), plain);
  expect(line.match(/\n/g)).toHaveLength(1);
  expect(line).toContain(String.raw`CN=evil\u{a}ok  everything\u{1b}[2K\u{202e}`);
});

test('only the mark is painted', () => {
  expect(formatStep(step(), (outcome, text) => `<${outcome}:${text}>`)).toMatch(/^<fail:FAIL> {2}tls [^<>]*->/);
});

test('the summary counts', () => {
  const steps = [step(), step({ outcome: 'ok' }), step({ outcome: 'skip' }), step({ outcome: 'ok' })];
  expect(formatSummary(steps)).toBe('1 FAIL, 0 warn, 2 ok, 1 skip\n');
});

test('the document has every member in every step', () => {
  const without: CheckStep = { step: 'dns', target: 'upstream', outcome: 'ok', ms: 1, detail: 'found' };
  expect(JSON.parse(formatJsonReport([without], true))).toEqual({ ok: true, steps: [{ ...without, advice: null }] });
  expect(JSON.parse(formatJsonReport([without], false))).toMatchObject({ ok: false });
  expect(JSON.parse(formatJsonReport([step()], true))).toMatchObject({ ok: false, steps: [{ advice: 'mend it' }] });
});

test('a secret that a server has sent back is masked, wherever it stands', () => {
  const echoed = step({ detail: 'limit: s3cret-value', advice: 'see s3cret-value, s3cret-value' });
  const masked = redactSteps([echoed], new Set(['s3cret-value', 'a']));
  expect(masked).toEqual([step({ detail: 'limit: ********', advice: 'see ********, ********' })]);
});
