/** The two files that init writes: as a whole or not at all, and over none that is there unless that was said. */
import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { copyFile, open, rename, rm } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
import { systemErrorCode } from '../../platform/atomic-write.ts';

/** Where the configuration file goes unless somebody says otherwise. */
export const DEFAULT_OUTPUT = 'sidecar.yaml';

export interface FileToWrite {
  readonly path: string;
  readonly text: string;
  /** Permission bits, less the process's mask. */
  readonly mode: number;
}

/** True for a file, a directory, and a link that leads to one. */
export function isExistingPath(path: string): boolean {
  return existsSync(path);
}

/** Beside the configuration file: `sidecar.client-secret` for `sidecar.yaml`. */
export function secretPathFor(output: string): string {
  return join(dirname(output), `${parse(output).name}.client-secret`);
}

/**
 * Writes all of them, or none: when one cannot be written, those before it are as they were.
 * @throws Error in words for people
 */
export async function writeAll(files: readonly FileToWrite[], isForced: boolean): Promise<void> {
  const leftovers: string[] = [];
  const undo: (() => Promise<void>)[] = [];
  const besides = (path: string): string => {
    const name = `${path}.${randomBytes(6).toString('hex')}.tmp`;
    leftovers.push(name);
    return name;
  };
  try {
    // All that can go wrong with the texts has gone wrong before the first file is touched.
    const drafts = files.map((file) => ({ file, draft: besides(file.path) }));
    for (const { file, draft } of drafts) await withPathInError(file, writeDraft(draft, file));
    for (const { file, draft } of drafts) {
      // Behind the last one nothing can fail.
      const mayHaveToGoBack = file !== files.at(-1) && isForced && isExistingPath(file.path);
      const before = mayHaveToGoBack ? besides(file.path) : undefined;
      await withPathInError(file, installDraft(draft, file.path, isForced, before));
      undo.unshift(() => (before === undefined ? rm(file.path, { force: true }) : rename(before, file.path)));
    }
  } catch (error) {
    for (const step of undo) await step();
    throw error;
  } finally {
    for (const path of leftovers) await rm(path, { force: true });
  }
}

async function writeDraft(draft: string, { text, mode }: FileToWrite): Promise<void> {
  const file = await open(draft, 'wx', mode);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** @param before where what is there is to be kept; undefined where nothing is */
async function installDraft(draft: string, path: string, isForced: boolean, before: string | undefined): Promise<void> {
  if (before !== undefined) await copyFile(path, before, constants.COPYFILE_EXCL);
  // Exclusive: a file that has come since it was looked for stays as it is.
  if (isForced) await rename(draft, path);
  else await copyFile(draft, path, constants.COPYFILE_EXCL);
}

async function withPathInError({ path }: FileToWrite, step: Promise<void>): Promise<void> {
  try {
    await step;
  } catch (error) {
    throw new Error(`${JSON.stringify(path)} cannot be written: ${describeWriteError(error)}; nothing was written`);
  }
}

function describeWriteError(error: unknown): string {
  const code = systemErrorCode(error);
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
