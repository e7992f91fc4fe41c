/** How a check is printed. */
import { expect, test } from 'vitest';
import { formatJsonReport, formatStep, formatSummary, redactSteps } from '../../../src/commands/check/report.ts';
import { createRedact } from '../../../src/platform/secrets.ts';
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

test('a line has mark, step, target, time, finding and advice', () => {
  expect(formatStep(step(), plain)).toMatch(/^FAIL {2}tls +upstream +12 ms {2}it broke -> mend it\n$/);
  expect(formatStep(step({ ms: 0 }), plain)).not.toContain('ms');
});

test('escapes control characters in texts of a server', () => {
  const line = formatStep(step({ detail: 'CN=evil\nok  everything\u001b[2K\u202e' }), plain);
  expect(line.match(/\n/g)).toHaveLength(1);
  expect(line).toContain(String.raw`CN=evil\u{a}ok  everything\u{1b}[2K\u{202e}`);
});

test('colours only the mark', () => {
  expect(formatStep(step(), (role, text) => `<${role}:${text}>`)).toMatch(/^<bad:FAIL> {2}tls [^<>]*->/);
});

test('the summary counts outcomes', () => {
  const steps = [step(), step({ outcome: 'ok' }), step({ outcome: 'skip' }), step({ outcome: 'ok' })];
  expect(formatSummary(steps)).toBe('1 FAIL, 0 warn, 2 ok, 1 skip\n');
});

test('the JSON document has every member in every step', () => {
  const without: CheckStep = { step: 'connect', target: 'upstream', outcome: 'ok', ms: 1, detail: 'found' };
  expect(JSON.parse(formatJsonReport([without], true))).toEqual({ ok: true, steps: [{ ...without, advice: null }] });
  expect(JSON.parse(formatJsonReport([without], false))).toMatchObject({ ok: false });
  expect(JSON.parse(formatJsonReport([step()], true))).toMatchObject({ ok: false, steps: [{ advice: 'mend it' }] });
});

test('masks a secret that a server has sent back', () => {
  const echoed = step({ detail: 'limit: s3cret-value', advice: 'see s3cret-value, s3cret-value' });
  const masked = redactSteps([echoed], createRedact(['s3cret-value', 'a']));
  expect(masked).toEqual([step({ detail: 'limit: ********', advice: 'see ********, ********' })]);
});

test('masks a secret in base64 too', () => {
  const encoded = Buffer.from('s3cret-value').toString('base64');
  expect(redactSteps([step({ detail: `Basic ${encoded}` })], createRedact(['s3cret-value']))[0]?.detail).not.toContain(
    encoded.slice(0, 8),
  );
});
