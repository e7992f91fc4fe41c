/**
 * `npm test` on any machine: makes sure that the packages are there, then hands over to tools/run-tests.ts under the
 * Node that they bring. Plain JavaScript for the Node that the machine has.
 */
import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { argv, env, exit } from 'node:process';
import { fileURLToPath } from 'node:url';
import { ensureInstalled } from './ensure-installed.mjs';

ensureInstalled();

const root = fileURLToPath(new URL('..', import.meta.url));
const path = join(root, 'node_modules', '.bin') + delimiter + (env.PATH ?? '');
const { status } = spawnSync('node', ['tools/run-tests.ts', ...argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
  env: { ...env, PATH: path },
});
exit(status ?? 1);
