/**
 * How many tests passed and failed, and which, from vitest's JSON report. The report alone shows no failure for a file that does
 * not load or for an unhandled rejection: those are counted here, one each.
 */
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/** The part of vitest's JSON report that counts. */
export interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    /** What kept the file from being loaded. */
    readonly message: string;
    /** Milliseconds since the epoch. */
    readonly startTime: number;
    readonly endTime: number;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      /** One an error, each with its stack. */
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  /** Why `failed` is more than the failed tests of the report. */
  readonly extraFailures: readonly string[];
}

/** @returns undefined when the run ended before it wrote its report */
export function readReport(file: string): VitestReport | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as VitestReport) : undefined;
}

/** @param exitCode vitest's own */
export function countTests(report: VitestReport | undefined, exitCode: number): Totals {
  if (report === undefined) return { passed: 0, failed: 1, extraFailures: ['vitest wrote no report'] };
  const uncounted = report.testResults
    .filter((file) => file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'))
    .map((file) => `${file.name} did not load: ${firstLine(file.message)}`);
  const failed = report.numFailedTests + uncounted.length;
  if (failed === 0 && exitCode !== 0) uncounted.push(`vitest ended with ${String(exitCode)} and named no failed test`);
  if (report.numPassedTests + failed === 0) uncounted.push('no test ran');
  return { passed: report.numPassedTests, failed: report.numFailedTests + uncounted.length, extraFailures: uncounted };
}

/** A failed test, with paths from the root of the project. */
interface Failure {
  readonly file: string;
  readonly fullName: string;
  /** The lines of its errors, without colours and without the stack in packages. */
  readonly lines: readonly string[];
}

export function listFailures(report: VitestReport | undefined, root: string): Failure[] {
  const files = report?.testResults ?? [];
  return files.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName, failureMessages }) => ({
        file: relative(root, name),
        fullName,
        lines: linesOf(failureMessages.join('\n')),
      })),
  );
}

/** The files that took longest, a line each, the longest first; loading them is not included. */
export function listSlowest(report: VitestReport | undefined, root: string, count: number): string[] {
  const files = (report?.testResults ?? []).map(({ name, startTime, endTime }) => ({ name, ms: endTime - startTime }));
  return files
    .toSorted((one, other) => other.ms - one.ms)
    .slice(0, count)
    .map(({ name, ms }) => `${(ms / 1000).toFixed(1).padStart(6)} s  ${relative(root, name)}`);
}

function linesOf(message: string): string[] {
  const lines = stripVTControlCharacters(message).split('\n');
  return lines.filter((line) => line.trim() !== '' && !/\/node_modules\/|\(<anonymous>\)/.test(line));
}

function firstLine(text: string): string {
  return text.split('\n', 1).join('');
}
