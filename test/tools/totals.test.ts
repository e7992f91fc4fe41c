/** What vitest's report leaves out must not pass for green. */
import { describe, expect, it } from 'vitest';
import { countTests, nameFailures } from '../../tools/test-run/totals.ts';
import type { VitestReport } from '../../tools/test-run/totals.ts';

function report(...files: { name: string; passed?: number; failed?: number; broken?: boolean }[]): VitestReport {
  const total = (key: 'passed' | 'failed'): number => files.reduce((sum, file) => sum + (file[key] ?? 0), 0);
  return {
    numPassedTests: total('passed'),
    numFailedTests: total('failed'),
    testResults: files.map(({ name, passed = 0, failed = 0, broken = false }) => ({
      name,
      status: broken || failed > 0 ? 'failed' : 'passed',
      message: broken ? 'SyntaxError: no such export\nand where' : '',
      assertionResults: [
        ...Array.from({ length: passed }, () => ({ status: 'passed', fullName: 'is well', failureMessages: [] })),
        ...Array.from({ length: failed }, () => ({
          status: 'failed',
          fullName: 'adds up',
          failureMessages: ['AssertionError: expected 3 to be 4\n    at add.ts:1', 'Error: second'],
        })),
      ],
    })),
  };
}

describe('countTests', () => {
  it.each([
    ['all green', report({ name: 'a', passed: 3 }), 0, { passed: 3, failed: 0 }],
    ['a failed test', report({ name: 'a', passed: 2, failed: 1 }), 1, { passed: 2, failed: 1 }],
    [
      'a file that does not load',
      report({ name: 'a', passed: 2 }, { name: 'b', broken: true }),
      1,
      { passed: 2, failed: 1 },
    ],
    ['an unhandled rejection', report({ name: 'a', passed: 2 }), 1, { passed: 2, failed: 1 }],
    ['no report', undefined, 1, { passed: 0, failed: 1 }],
    ['no test at all', report(), 0, { passed: 0, failed: 1 }],
  ])('%s', (_, input, exitCode, expected) => {
    expect(countTests(input, exitCode)).toMatchObject(expected);
  });
});

it('reports why a file did not load', () => {
  expect(countTests(report({ name: 'b', broken: true }), 1).extraFailures).toEqual([
    'b did not load: SyntaxError: no such export',
  ]);
});

describe('nameFailures', () => {
  it('returns the file, the test and the first line of its error', () => {
    expect(nameFailures(report({ name: 'a', passed: 1, failed: 1 }))).toEqual([
      'a > adds up: AssertionError: expected 3 to be 4',
    ]);
  });

  it.each([
    ['all green', report({ name: 'a', passed: 3 })],
    ['no report', undefined],
  ])('%s', (_, input) => {
    expect(nameFailures(input)).toEqual([]);
  });
});
