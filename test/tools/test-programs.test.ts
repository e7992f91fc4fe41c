/** When `npm test` installs no packages. The apt-get here is a script that writes down its arguments. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { installMissingPrograms } from '../../tools/test-run/test-programs.ts';

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
