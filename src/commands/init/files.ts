/** Writes the files of init completely or not at all. Existing files are overwritten only by force. */
import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { copyFile, open, rename, rm } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
import { systemErrorCode } from '../../platform/file-errors.ts';
import type { secretFileKey } from './init-settings.ts';

export const DEFAULT_OUTPUT = 'sidecar.yaml';

export interface FileToWrite {
  readonly path: string;
  readonly text: string;
  /** Permission bits before the umask. */
  readonly mode: number;
}

/** The path next to the configuration file: `sidecar.client-secret` or `sidecar.token` for `sidecar.yaml`. */
export function secretPathFor(output: string, key: ReturnType<typeof secretFileKey>): string {
  return join(dirname(output), `${parse(output).name}.${key === 'auth.tokenFile' ? 'token' : 'client-secret'}`);
}

/**
 * Writes all files or none: when one cannot be written, the earlier ones are restored.
 * @throws Error with a message for the user
 */
export async function writeAll(files: readonly FileToWrite[], isForced: boolean): Promise<void> {
  const leftovers: string[] = [];
  const undo: (() => Promise<void>)[] = [];
  const temporaryPath = (path: string): string => {
    const name = `${path}.${randomBytes(6).toString('hex')}.tmp`;
    leftovers.push(name);
    return name;
  };
  try {
    // All texts are on the disk before the first file is replaced.
    const drafts = files.map((file) => ({ file, draft: temporaryPath(file.path) }));
    for (const { file, draft } of drafts) await withPathInError(file, writeDraft(draft, file));
    for (const { file, draft } of drafts) {
      // After the last file nothing can fail.
      const needsBackup = file !== files.at(-1) && isForced && existsSync(file.path);
      const backup = needsBackup ? temporaryPath(file.path) : undefined;
      await withPathInError(file, installDraft(draft, file.path, isForced, backup));
      undo.unshift(() => (backup === undefined ? rm(file.path, { force: true }) : rename(backup, file.path)));
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

/** @param backup where to keep the existing file; undefined: no backup */
async function installDraft(draft: string, path: string, isForced: boolean, backup: string | undefined): Promise<void> {
  if (backup !== undefined) await copyFile(path, backup, constants.COPYFILE_EXCL);
  // Exclusive: a file created since the check is not overwritten.
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
  return WRITE_FAULTS[code] ?? code;
}

const WRITE_FAULTS: Readonly<Record<string, string>> = {
  EEXIST: 'it exists',
  ENOENT: 'its directory does not exist',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
};
