/** Builds of two revisions side by side, and a copy of a build that is slower by a known part. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeProgram } from '../../../tools/bundle/write-program.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');

export interface Build extends Disposable {
  /** Its `main.js`. */
  readonly main: string;
}

/** The working tree, changes that are not committed included. */
export async function buildWorkingTree(): Promise<Build> {
  const folder = join(ROOT, 'dist');
  await writeProgram(ROOT, folder);
  return { main: join(folder, 'main.js'), [Symbol.dispose]: () => undefined };
}

/**
 * Built by its own tools, with its own packages where its lock file is another one.
 * @throws Error with what git or the build printed, for example for an unknown revision
 */
export function buildRevision(revision: string): Build {
  const folder = mkdtempSync(join(tmpdir(), 'compare-'));
  const root = join(folder, 'tree');
  git('worktree', 'add', '--detach', '--force', root, revision);
  if (hasSamePackages(root)) symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  else execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync(process.execPath, ['tools/bundle/main.ts'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  return {
    main: join(root, 'dist', 'main.js'),
    [Symbol.dispose]: () => {
      git('worktree', 'remove', '--force', root);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const FORWARD = 'async function forwardRequest(parts,exchange){';

/**
 * A copy of a build in which each request takes longer, to test the comparison itself.
 * @param iterations of a loop that is added to each request
 */
export function slowDown(build: Build, iterations: number): Build {
  const folder = join(build.main, '..', '..', `dist-slower-${String(process.pid)}`);
  cpSync(join(build.main, '..'), folder, { recursive: true });
  const [file] = globSync('*.js', { cwd: folder }).filter((name) =>
    readFileSync(join(folder, name), 'utf8').includes(FORWARD),
  );
  if (file === undefined) throw new Error(`no file of the build has the function "${FORWARD}"`);
  // Other work of the machine slows a loop as it slows the request; a wait for an instant would be shorter then.
  const spin = `let spun=1;for(let left=${String(iterations)};left>0;left--)spun=(spun*1103515245+12345)|0;globalThis.spun=spun;`;
  const path = join(folder, file);
  writeFileSync(path, readFileSync(path, 'utf8').replace(FORWARD, `${FORWARD}${spin}`));
  return { main: join(folder, 'main.js'), [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

function hasSamePackages(root: string): boolean {
  const lockOf = (folder: string): string => readFileSync(join(folder, 'package-lock.json'), 'utf8');
  return existsSync(join(ROOT, 'node_modules')) && lockOf(root) === lockOf(ROOT);
}

function git(...args: string[]): void {
  execFileSync('git', args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
}
