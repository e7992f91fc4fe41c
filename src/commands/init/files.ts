/** The two files that init writes: as a whole or not at all, and over none that is there unless that was said. */
import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { copyFile, open, rename, rm } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';

/** Where the configuration file goes unless somebody says otherwise. */
export const DEFAULT_OUTPUT = 'sidecar.yaml';

export interface FileToWrite {
  readonly path: string;
  readonly text: string;
  /** Permission bits, less the process's mask. */
  readonly mode: number;
}

/** True for a file, a directory, and a link that leads to one. */
export function isThere(path: string): boolean {
  return existsSync(path);
}

/** Beside the configuration file: `sidecar.client-secret` for `sidecar.yaml`. */
export function secretPathFor(output: string): string {
  return join(dirname(output), `${parse(output).name}.client-secret`);
}

/**
 * Writes all of them; when one cannot be written, those before it that were not there are gone again.
 * @throws Error in words for people
 */
export async function writeAll(files: readonly FileToWrite[], isForced: boolean): Promise<void> {
  const added: string[] = [];
  for (const file of files) {
    const isNew = !isThere(file.path);
    try {
      await write(file, isForced);
      if (isNew) added.push(file.path);
    } catch (error) {
      for (const path of added) await rm(path, { force: true });
      throw new Error(`${JSON.stringify(file.path)} cannot be written: ${faultOf(error)}; nothing was written`);
    }
  }
}

async function write({ path, text, mode }: FileToWrite, isForced: boolean): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const file = await open(draft, 'wx', mode);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    // Exclusive: a file that has come since it was looked for stays as it is.
    if (isForced) await rename(draft, path);
    else await copyFile(draft, path, constants.COPYFILE_EXCL);
  } finally {
    await rm(draft, { force: true });
  }
}

function faultOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
  switch (code) {
    case 'EEXIST':
      return 'it exists';
    case 'ENOENT':
      return 'its directory does not exist';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    default:
      return code;
  }
}
