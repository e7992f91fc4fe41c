/**
 * `npm pack` and `npm publish`: before, it builds dist/ and puts the README of the package in the place of the repository's; after
 * (`restore`), it puts that back. npm packs the README.md of the folder and no other.
 */
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeProgram } from '../bundle/write-program.ts';
import { toPackageReadme } from './readme.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const README = join(ROOT, 'README.md');
/** While the package is made. It is there before only when npm did not get to its end. */
const KEPT = join(ROOT, 'build', 'README.md');

async function prepare(): Promise<void> {
  if (existsSync(KEPT)) renameSync(KEPT, README);
  await writeProgram(ROOT, join(ROOT, 'dist'));
  mkdirSync(join(ROOT, 'build'), { recursive: true });
  copyFileSync(README, KEPT);
  writeFileSync(README, toPackageReadme(readFileSync(README, 'utf8'), listPackagedFiles()));
}

/** Of the `files` of package.json, and what npm adds. */
function listPackagedFiles(): Set<string> {
  const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { files: readonly string[] };
  const found = files.flatMap((folder) => globSync(`${folder}/**/*.*`, { cwd: ROOT }));
  return new Set([...found, 'LICENSE', 'README.md', 'package.json']);
}

if (process.argv[2] === 'restore') renameSync(KEPT, README);
else await prepare();
