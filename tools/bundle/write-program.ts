/** Writes dist/: the bundled program, the files of its status page, and the licences of the bundled packages. */
import { copyFileSync, globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleProgram } from './bundle.ts';
import { gatherPackageLicences } from './licences.ts';

const PAGE = join('admin', 'page', 'client');
const LICENCES = 'licences.txt';

/**
 * Overwrites the files first and then removes those that are no longer part of it: the old program may be running.
 * @param root this package's folder
 * @param folder is written to; other files in it are removed
 */
export async function writeProgram(root: string, folder: string): Promise<void> {
  const files = await bundleProgram(root);
  mkdirSync(join(folder, PAGE), { recursive: true });
  for (const { name, code } of files) writeFileSync(join(folder, name), code);
  writeFileSync(
    join(folder, LICENCES),
    gatherPackageLicences(
      root,
      files.flatMap(({ modules }) => modules),
    ),
  );
  const page = globSync(join(PAGE, '*.{js,css}'), { cwd: join(root, 'src') });
  for (const path of page) copyFileSync(join(root, 'src', path), join(folder, path));
  const wanted = new Set([...files.map(({ name }) => name), LICENCES, ...page]);
  for (const path of globSync('**/*.*', { cwd: folder })) if (!wanted.has(path)) rmSync(join(folder, path));
}
