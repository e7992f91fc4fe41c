/**
 * Brings the packages, and with them Node 26, when they are not there yet. Plain JavaScript, because it runs on
 * whatever Node the machine has; everything else is left to the Node that it brings.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { argv, exit } from 'node:process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Runs `npm ci` unless its last step (the lock file's copy in node_modules) was reached before; exits when it fails. */
export function ensureInstalled() {
  const done = join(ROOT, 'node_modules', '.package-lock.json');
  if (existsSync(done)) return;
  // npm's report goes to stderr: stdout belongs to the command that follows.
  const result = spawnSync('npm', ['ci'], { cwd: ROOT, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
  if (result.status === 0) return;
  // A half-made tree would pass for a whole one next time.
  rmSync(done, { force: true });
  exit(result.status ?? 1);
}

if (argv[1] === fileURLToPath(import.meta.url)) ensureInstalled();
