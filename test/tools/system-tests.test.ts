/** The list that divides the tests into those of `npm run test:unit` and the others. */
import { globSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { expect, it } from 'vitest';
import { LONGEST_TESTS } from '../../tools/test-run/longest-tests.ts';
import { OWN_PROCESS_TESTS, SYSTEM_TESTS } from '../../tools/test-run/system-tests.ts';
import { importsOf } from '../../tools/test-run/test-imports.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** Modules of test/support that start a server program, a browser or the sidecar. */
const STARTS_PROGRAM =
  /^test\/support\/(?:chromium|container-process|haproxy|nginx|node-versions|openssl-server|pods|prometheus|redis|sidecar-process|terminal|tinyproxy)\.ts$/;
/** Without those of `npm run soak`. */
const FILES = globSync('test/**/*.test.ts', { cwd: ROOT, exclude: ['test/soak/**'] });

it('no unit test imports a module that starts a server program, a browser or the sidecar', () => {
  const unit = FILES.filter(
    (file) => ![...SYSTEM_TESTS, ...OWN_PROCESS_TESTS].some((pattern) => matchesGlob(file, pattern)),
  );
  expect(unit.length).toBeGreaterThan(100);
  const misplaced = unit.filter((file) => [...importsOf(ROOT, file)].some((path) => STARTS_PROGRAM.test(path)));
  expect(misplaced).toEqual([]);
});

it('every pattern of the lists matches a test', () => {
  const patterns = [...SYSTEM_TESTS, ...OWN_PROCESS_TESTS, ...LONGEST_TESTS];
  expect(patterns.filter((pattern) => !FILES.some((file) => matchesGlob(file, pattern)))).toEqual([]);
});
