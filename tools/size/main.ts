/**
 * Prints the size of src by folder, each figure with its change since a base: `npm run size -- REVISION`. By default the base is the tag
 * of the last release; before the first release the figures stand alone.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NONE, add, countFolders } from './count.ts';
import type { Size } from './count.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COLUMNS = Object.keys(NONE) as (keyof Size)[];

function git(...args: string[]): Buffer {
  return execFileSync('git', args, { cwd: ROOT, maxBuffer: 2 ** 30 });
}

function countRevision(revision: string): Map<string, Size> {
  const folder = mkdtempSync(join(tmpdir(), 'size-'));
  try {
    execFileSync('tar', ['-x', '-C', folder], { input: git('archive', revision, 'src') });
    return countFolders(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function printRow(name: string, size = NONE, before = NONE): void {
  const changeOf = (key: keyof Size): string => {
    const change = size[key] - before[key];
    return change > 0 ? `+${String(change)}` : String(change || '·');
  };
  const figures = COLUMNS.map((key) => String(size[key]).padStart(6) + (isCompared ? changeOf(key) : '').padStart(6));
  console.log((name.padEnd(12) + figures.join('')).trimEnd());
}

function sumOf(folders: Map<string, Size>): Size {
  return [...folders.values()].reduce(add, NONE);
}

const [lastRelease] = git('tag', '--merged', 'HEAD', '--list', 'v*', '--sort=-v:refname').toString().split('\n');
const baseRevision = process.argv[2] ?? lastRelease ?? '';
const isCompared = baseRevision !== '';
const current = countFolders(ROOT);
const base = isCompared ? countRevision(baseRevision) : new Map<string, Size>();

console.log('folder'.padEnd(12) + COLUMNS.map((key) => key.padStart(12)).join(''));
// Largest folder first; one that only the base has is listed with what it lost.
const names = [...new Set([...current.keys(), ...base.keys()])];
names.sort((a, b) => (current.get(b)?.lines ?? 0) - (current.get(a)?.lines ?? 0));
for (const name of names) printRow(name, current.get(name), base.get(name));
printRow('all', sumOf(current), sumOf(base));
console.log(
  isCompared
    ? `\nBeside each figure: its change since ${baseRevision}.`
    : '\nNo release is tagged: name a base revision.',
);
