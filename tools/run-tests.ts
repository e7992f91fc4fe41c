/**
 * `npm test`: installs missing programs, builds the program, runs vitest, searches everything that was printed for secrets, and prints the
 * slowest files and what failed.
 * Test files whose programs are missing are skipped; with `CI=true` they fail.
 * The last line is `N passed, N failed`, and the exit code agrees with it. Arguments go to vitest. `TESTED_NODE` names the version of Node.js
 * that runs vitest, such as 22.21.0. Default: the project's own. `TESTED_MAIN` names the program that tests start. Default: the one built.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installNode } from '../test/support/node-versions.ts';
import { writeProgram } from './bundle/write-program.ts';
import { findLeaks } from './test-run/leaks.ts';
import { installTestPrograms } from './test-run/test-programs.ts';
import { countTests, listFailures, listSlowest, readReport } from './test-run/totals.ts';
import { runVitest } from './test-run/vitest.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUTPUT = join(ROOT, 'test', '.output');
const REPORT = join(OUTPUT, 'vitest.json');
/** Of each failed test: enough for a message with its difference, and for the place in the test. */
const SHOWN_LINES = 14;
const SHOWN_SLOW_FILES = 30;

rmSync(OUTPUT, { recursive: true, force: true });
mkdirSync(OUTPUT, { recursive: true });

const missing = installTestPrograms(ROOT);
const isCi = process.env.CI === 'true';
const skippedTests = isCi ? [] : [...new Set(missing.flatMap(({ tests }) => tests))];
const missingPrograms = missing.map(
  ({ program, tests }) =>
    `${program} is missing and was not installed; ${isCi ? 'these fail' : 'skipped'} without it: ${tests.join(', ')}`,
);
for (const line of missingPrograms) console.error(`!!! ${line}`);

const { TESTED_NODE = process.versions.node, TESTED_MAIN } = process.env;
if (TESTED_MAIN === undefined) {
  // Tests start the program several hundred times, and the sources take longer to start than the bundle.
  await writeProgram(ROOT, join(ROOT, 'dist'));
  process.env.TESTED_MAIN = join('dist', 'main.js');
}
const exitCode = await runVitest({
  node: await installNode(TESTED_NODE),
  root: ROOT,
  report: REPORT,
  log: join(OUTPUT, 'vitest.log'),
  args: [...process.argv.slice(2), ...skippedTests.map((file) => `--exclude=${file}`)],
});

const report = readReport(REPORT);
console.log(`the slowest files:\n${listSlowest(report, ROOT, SHOWN_SLOW_FILES).join('\n')}`);

const { filesRead, secrets, leaks } = findLeaks(OUTPUT);
console.log(
  `secrets: ${String(secrets)} registered, searched in ${String(filesRead)} files, ${String(leaks.length)} hits`,
);

const totals = countTests(report, exitCode);
const failures = listFailures(report, ROOT);
for (const { file, fullName, lines } of failures)
  console.error(`\n${file} > ${fullName}\n${lines.slice(0, SHOWN_LINES).join('\n')}`);
// After the errors, so that the end of a long output still names every failure.
for (const { file, fullName, lines } of failures) console.error(`failed: ${file} > ${fullName}: ${lines[0] ?? ''}`);
for (const leak of leaks) console.error(`LEAK: ${leak.file}:${String(leak.line)} holds ${leak.what}`);
for (const line of missingPrograms) console.error(`!!! ${line}`);
for (const reason of totals.extraFailures) console.error(`counted as failed: ${reason}`);
const failed = totals.failed + leaks.length;
console.log(`${String(totals.passed)} passed, ${String(failed)} failed`);
process.exitCode = failed === 0 && exitCode === 0 ? 0 : 1;
