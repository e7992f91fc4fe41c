/** Takes out of installed packages what Node.js never loads. */
import { globSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';

/**
 * package.json files stay, by which modules are found. Folders go by their name only at the top of a package: further down, a
 * `doc` can be code.
 */
const NEVER_LOADED = [
  '**/*.{md,markdown,map,flow,ts,cts,mts}',
  '{*,@*/*}/{test,tests,__tests__,doc,docs,example,examples,bench,benchmark,benchmarks,.github}/',
  '.package-lock.json',
  '.bin/',
];

/** Licence files must be distributed with a package. */
const LICENCE = /^(?:licen[cs]e|notice|copying)/i;

/** @param packages a node_modules folder */
export function removeUnusedFiles(packages: string): void {
  for (const pattern of NEVER_LOADED)
    for (const path of globSync(pattern, { cwd: packages }))
      if (!LICENCE.test(basename(path))) rmSync(join(packages, path), { recursive: true, force: true });
}
