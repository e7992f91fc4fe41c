/** Which modules of test/ a test file loads. */
import { existsSync, readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';

const IMPORT = /^(?:import|export) (?!type )[^;]*? from '(\.[^']+)'/gm;

/** @returns the file and everything in test/ that it imports, directly or not, without what it imports for its types; paths from the root */
export function importsOf(root: string, file: string, found = new Set<string>()): Set<string> {
  if (found.has(file) || !file.startsWith('test/') || !existsSync(join(root, file))) return found;
  found.add(file);
  for (const [, path = ''] of readFileSync(join(root, file), 'utf8').matchAll(IMPORT))
    importsOf(root, normalize(join(file, '..', path)), found);
  return found;
}
