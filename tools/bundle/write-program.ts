/** Writes what users run: the bundled program, the files of its status page, and the licences of the packages that are inside. */
import { copyFileSync, globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleProgram } from './bundle.ts';
import { gatherPackageLicences } from './licences.ts';

const PAGE = join('admin', 'page', 'client');
const LICENCES = 'licences.txt';

/**
 * Over what is there, and only then without what is no longer part of it: somebody may be running it.
 * @param root this package's folder
 * @param folder where it goes; it is for nothing else
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
