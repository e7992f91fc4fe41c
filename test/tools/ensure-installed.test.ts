/** When `npm start` and `npm test` install the packages: with an npm of the test's own that notes its calls. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

interface Package {
  readonly version: string;
  readonly integrity: string;
  readonly optional?: boolean;
}

const lockOf = (packages: Readonly<Record<string, Package>>, root = {}): string =>
  JSON.stringify({ lockfileVersion: 3, packages: { ...root, ...packages } });

const at = (version: string): Package => ({ version, integrity: `sha512-${version}` });
const FOREIGN = { ...at('1.0.0'), optional: true };
const LISTED = { 'node_modules/a': at('1.0.0'), 'node_modules/b': at('2.0.0'), 'node_modules/foreign': FOREIGN };
const INSTALLED = { 'node_modules/a': at('1.0.0'), 'node_modules/b': at('2.0.0') };

/** A project with a package-lock.json; `installed` is what npm has noted in node_modules. */
function makeProject(installed: Readonly<Record<string, Package>> | undefined, npmExit = 0) {
  const root = mkdtempSync(join(tmpdir(), 'installed-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const folder of ['tools', 'node_modules', 'bin']) mkdirSync(join(root, folder));
  copyFileSync(join(import.meta.dirname, '../../tools/ensure-installed.mjs'), join(root, 'tools/ensure-installed.mjs'));
  const done = join(root, 'node_modules/.package-lock.json');
  const list = (packages: Readonly<Record<string, Package>>): void =>
    writeFileSync(join(root, 'package-lock.json'), lockOf(packages, { '': { name: 'it' } }));
  list(LISTED);
  if (installed !== undefined) writeFileSync(done, lockOf(installed));
  // Notes less than is listed: what npm makes of a lock file is its own affair.
  const npm = `#!/bin/sh\necho "$@" >> "${root}/calls"\necho '${lockOf({})}' > "${done}"\nexit ${npmExit}\n`;
  writeFileSync(join(root, 'bin/npm'), npm);
  chmodSync(join(root, 'bin/npm'), 0o755);
  const run = (): number | null =>
    spawnSync(process.execPath, [join(root, 'tools/ensure-installed.mjs')], {
      env: { PATH: [join(root, 'bin'), process.env.PATH].join(delimiter) },
    }).status;
  const calls = (): string => (existsSync(join(root, 'calls')) ? readFileSync(join(root, 'calls'), 'utf8') : '');
  return { run, calls, list, done };
}

it('installs nothing when npm has installed the lock file, except packages of other platforms', () => {
  const { run, calls } = makeProject(INSTALLED);
  expect([run(), calls()]).toEqual([0, '']);
});

it.each([
  ['nothing is there', undefined],
  ['a package is of another version', { ...INSTALLED, 'node_modules/b': at('1.9.0') }],
  ['a package is missing', { 'node_modules/a': at('1.0.0') }],
  ['a package is there that is listed no more', { ...INSTALLED, 'node_modules/c': at('3.0.0') }],
])('all is installed when %s, once', (_, installed) => {
  const { run, calls } = makeProject(installed);
  expect([run(), calls()]).toEqual([0, 'ci\n']);
  expect([run(), calls()]).toEqual([0, 'ci\n']);
});

it('installs again when the lock file changes', () => {
  const { run, calls, list } = makeProject(undefined);
  run();
  list({ ...LISTED, 'node_modules/b': at('2.0.1') });
  expect([run(), calls()]).toEqual([0, 'ci\nci\n']);
});

it('ends after a failed installation, and does not record it as installed', () => {
  const { run, calls, done } = makeProject(undefined, 7);
  expect([run(), existsSync(done)]).toEqual([7, false]);
  expect([run(), calls()]).toEqual([7, 'ci\nci\n']);
});
