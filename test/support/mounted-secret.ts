/**
 * A folder of files as Kubernetes mounts a Secret: the files are links through `..data`, itself a link to a folder that is
 * replaced as a whole.
 */
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface MountedSecret extends AsyncDisposable {
  /** Where an application reads the file of this name. */
  path(name: string): string;
  /** Replaces all files at once. */
  replace(files: Readonly<Record<string, string>>): Promise<void>;
}

/** Mounts these files, by their names. */
export async function mountSecret(files: Readonly<Record<string, string>>): Promise<MountedSecret> {
  const folder = await mkdtemp(join(tmpdir(), 'mounted-secret-'));
  let version = 0;
  const replace = async (contents: Readonly<Record<string, string>>): Promise<void> => {
    const before = join(folder, `..${String(version)}`);
    version += 1;
    const name = `..${String(version)}`;
    await mkdir(join(folder, name));
    for (const [file, content] of Object.entries(contents)) await writeFile(join(folder, name, file), content);
    await symlink(name, join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
    await rm(before, { recursive: true, force: true });
  };
  await replace(files);
  for (const file of Object.keys(files)) await symlink(join('..data', file), join(folder, file));
  return {
    path: (name) => join(folder, name),
    replace,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}
