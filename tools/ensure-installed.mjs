/**
 * Brings the packages, and with them Node 26, when they are not there yet or are those of another package-lock.json. Plain
 * JavaScript, because it runs on whatever Node the machine has; everything else is left to the Node that it brings.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv, exit } from 'node:process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const WANTED = join(ROOT, 'package-lock.json');
/** npm's own list of what it has installed: its last step. */
const DONE = join(ROOT, 'node_modules', '.package-lock.json');
/** Which package-lock.json was installed by this file, as its hash. */
const STAMP = join(ROOT, 'node_modules', '.installed-lock');

/** Runs `npm ci` unless what package-lock.json lists is there; exits when it fails. */
export function ensureInstalled() {
  const hash = createHash('sha256').update(readFileSync(WANTED)).digest('hex');
  if (existsSync(DONE) && (isStamped(hash) || agrees())) return;
  // npm's report goes to stderr: stdout belongs to the command that follows.
  const result = spawnSync('npm', ['ci'], { cwd: ROOT, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
  if (result.status === 0) {
    writeFileSync(STAMP, hash);
    return;
  }
  // A half-made tree would pass for a whole one next time.
  rmSync(DONE, { force: true });
  exit(result.status ?? 1);
}

function isStamped(hash) {
  return existsSync(STAMP) && readFileSync(STAMP, 'utf8') === hash;
}

/** Whether npm, started by hand, has installed just what is listed; optional packages of other platforms are not there. */
function agrees() {
  const wanted = packagesOf(WANTED);
  const there = packagesOf(DONE);
  const isSame = (path) =>
    there[path].version === wanted[path]?.version && there[path].integrity === wanted[path]?.integrity;
  const isMissing = (path) => path !== '' && there[path] === undefined && !wanted[path].optional;
  return Object.keys(there).every(isSame) && !Object.keys(wanted).some(isMissing);
}

function packagesOf(file) {
  return JSON.parse(readFileSync(file, 'utf8')).packages ?? {};
}

if (argv[1] === fileURLToPath(import.meta.url)) ensureInstalled();
