/** What vitest's report leaves out must not pass for green. */
import { describe, expect, it } from 'vitest';
import { countTests, listFailures, listSlowest } from '../../tools/test-run/totals.ts';
import type { VitestReport } from '../../tools/test-run/totals.ts';

const ERROR = [
  '\u001b[31mAssertionError\u001b[39m: expected 3 to be 4',
  '    at add.ts:1',
  '    at run (/root/node_modules/vitest/run.js:1)',
  '    at new Promise (<anonymous>)',
].join('\n');

function report(
  ...files: { name: string; passed?: number; failed?: number; broken?: boolean; ms?: number }[]
): VitestReport {
  const total = (key: 'passed' | 'failed'): number => files.reduce((sum, file) => sum + (file[key] ?? 0), 0);
  return {
    numPassedTests: total('passed'),
    numFailedTests: total('failed'),
    testResults: files.map(({ name, passed = 0, failed = 0, broken = false, ms = 0 }) => ({
      name,
      startTime: 1000,
      endTime: 1000 + ms,
      status: broken || failed > 0 ? 'failed' : 'passed',
      message: broken ? 'SyntaxError: no such export\nand where' : '',
      assertionResults: [
        ...Array.from({ length: passed }, () => ({ status: 'passed', fullName: 'is well', failureMessages: [] })),
        ...Array.from({ length: failed }, () => ({
          status: 'failed',
          fullName: 'adds up',
          failureMessages: [ERROR, 'Error: second'],
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

describe('listFailures', () => {
  it('returns the file, the test and the lines of its errors, without colours and without the stack in packages', () => {
    const failed = report({ name: '/root/test/a.test.ts', passed: 1, failed: 1 });
    expect(listFailures(failed, '/root')).toEqual([
      {
        file: 'test/a.test.ts',
        fullName: 'adds up',
        lines: ['AssertionError: expected 3 to be 4', '    at add.ts:1', 'Error: second'],
      },
    ]);
  });

  it.each([
    ['all green', report({ name: 'a', passed: 3 })],
    ['no report', undefined],
  ])('%s', (_, input) => {
    expect(listFailures(input, '')).toEqual([]);
  });
});

it('lists the files that took longest, the longest first', () => {
  const files = [3_040, 12_345, 100].map((ms) => ({ name: `/root/test/${String(ms)}.test.ts`, ms }));
  expect(listSlowest(report(...files), '/root', 2)).toEqual([
    '  12.3 s  test/12345.test.ts',
    '   3.0 s  test/3040.test.ts',
  ]);
  expect(listSlowest(undefined, '/root', 2)).toEqual([]);
});
