/** Writes what users run: the bundled program, the files of its status page, and the licences of the packages that are inside. */
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleProgram } from './bundle.ts';
import { gatherPackageLicences } from './licences.ts';

const PAGE = join('admin', 'page', 'client');

/**
 * Over what is there, and only then without what is no longer part of it: somebody may be running it.
 * @param root this package's folder
 * @param folder where it goes; it is for nothing else
 */
export async function writeProgram(root: string, folder: string): Promise<void> {
  const { files, modules } = await bundleProgram(root);
  mkdirSync(folder, { recursive: true });
  for (const { name, code } of files) writeFileSync(join(folder, name), code);
  writeFileSync(join(folder, 'licences.txt'), gatherPackageLicences(root, modules));
  cpSync(join(root, 'src', PAGE), join(folder, PAGE), { recursive: true, filter: (path) => !path.endsWith('.json') });
  const present = new Set([...files.map(({ name }) => name), 'licences.txt', 'admin']);
  for (const name of readdirSync(folder)) if (!present.has(name)) rmSync(join(folder, name), { recursive: true });
}
