/** Writes the files of init completely or not at all, for this user only. Existing files are overwritten only by force. */
import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { copyFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, parse, resolve } from 'node:path';
import { writeFileAtomically } from '../../platform/atomic-write.ts';
import { systemErrorCode } from '../../platform/file-errors.ts';
import { SECRET_NAME } from './curl/request-kind.ts';
import type { secretFileKey } from './init-settings.ts';

export const DEFAULT_OUTPUT = 'sidecar.yaml';

export interface FileToWrite {
  readonly path: string;
  readonly text: string;
}

export function secretPathFor(output: string, key: ReturnType<typeof secretFileKey>): string {
  return pathBeside(output, key === 'auth.tokenFile' ? 'token' : 'client-secret');
}

function pathBeside(output: string, suffix: string): string {
  return join(dirname(output), `${parse(output).name}.${suffix}`);
}

/** Moves values that are secrets by their names into files beside the configuration: `sidecar.x-api-key`. @param fields JSON */
export function moveSecretFields(fields: string, output: string): { fields: string; files: readonly FileToWrite[] } {
  const files: FileToWrite[] = [];
  const moved = Object.entries(JSON.parse(fields) as object).map(([name, value]: [string, unknown]) => {
    if (typeof value !== 'string' || !SECRET_NAME.test(name)) return [name, value] as const;
    const path = pathBeside(output, name.toLowerCase().replaceAll(/[^a-z\d._-]/g, '_'));
    files.push({ path, text: `${value}\n` });
    return [name, { file: resolve(path) }] as const;
  });
  return { fields: JSON.stringify(Object.fromEntries(moved)), files };
}

/** Writes all files or none: the earlier ones are restored. @throws Error with a message for the user */
export async function writeAll(files: readonly FileToWrite[], isForced: boolean): Promise<void> {
  const undo: (() => Promise<void>)[] = [];
  const backups: string[] = [];
  try {
    for (const { path, text } of files) {
      if (isForced && existsSync(path)) {
        const backup = `${path}.${randomBytes(6).toString('hex')}.tmp`;
        backups.push(backup);
        await withPathInError(path, copyFile(path, backup, constants.COPYFILE_EXCL));
        undo.unshift(() => rename(backup, path));
      } else {
        // Exclusive: a file created since the check is not overwritten.
        await withPathInError(path, writeFile(path, '', { flag: 'wx', mode: 0o600 }));
        undo.unshift(() => rm(path, { force: true }));
      }
      await withPathInError(path, writeFileAtomically(path, text));
    }
  } catch (error) {
    for (const step of undo) await step();
    throw error;
  } finally {
    for (const path of backups) await rm(path, { force: true });
  }
}

async function withPathInError(path: string, step: Promise<void>): Promise<void> {
  try {
    await step;
  } catch (error) {
    const code = systemErrorCode(error);
    const why = WRITE_FAULTS[code] ?? code;
    throw new Error(`${JSON.stringify(path)} cannot be written: ${why}; nothing was written`);
  }
}

const WRITE_FAULTS: Readonly<Record<string, string>> = {
  EEXIST: 'it exists',
  ENOENT: 'its directory does not exist',
  EACCES: 'permission denied',
};
