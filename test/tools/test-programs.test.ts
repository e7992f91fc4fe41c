/** When `npm test` installs no packages, and which test files need a program. The apt-get here is a script that writes down its arguments. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { findTests, installMissingPrograms } from '../../tools/test-run/test-programs.ts';

const NEEDED = [{ program: 'no-such-program', package: 'no-such-package', tests: 'test/none' }];
const STILL_MISSING = ['no-such-program is missing and was not installed; these fail without it: test/none'];
let folder: string;
let calls: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'test-programs-'));
  calls = join(folder, 'calls');
  writeFileSync(join(folder, 'apt-get'), `#!/bin/sh\necho "$@" >> '${calls}'\n`, { mode: 0o755 });
  vi.stubEnv('PATH', folder);
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

it('with INSTALL_PROGRAMS=false root installs nothing, and what fails is listed', () => {
  vi.stubEnv('INSTALL_PROGRAMS', 'false');
  vi.spyOn(process, 'getuid').mockReturnValue(0);
  expect(installMissingPrograms(NEEDED)).toEqual(STILL_MISSING);
  expect(existsSync(calls)).toBe(false);
});

it('another user than root installs nothing', () => {
  vi.spyOn(process, 'getuid').mockReturnValue(1000);
  expect(installMissingPrograms(NEEDED)).toEqual(STILL_MISSING);
  expect(existsSync(calls)).toBe(false);
});

it('a test file needs a program when it is, or imports, what starts it, but not for its types alone', () => {
  const files = {
    'far.test.ts': "import {\n  helper,\n} from './support/helper.ts';\n",
    'near.test.ts': "import { start } from './support/starter.ts';\n",
    'other.test.ts': "import type { Started } from './support/starter.ts';\nimport { join } from 'node:path';\n",
    'own.test.ts': 'export {};\n',
    'support/helper.ts': "import { start } from './starter.ts';\n",
    'support/starter.ts': 'export const start = 1;\n',
  };
  mkdirSync(join(folder, 'test', 'support'), { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, 'test', file), text);
  expect(findTests(folder, ['test/support/starter.ts', 'test/own.test.ts'])).toEqual(
    ['far', 'near', 'own'].map((name) => `test/${name}.test.ts`),
  );
});
