/**
 * Writes a small file as a whole: whoever reads it meets the old text or the new one, never a part, whatever ends in
 * between. Only this user may read it.
 */
import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Needs a directory that may be written: the text is written beside the file and takes its place.
 * @throws Error with a code, having left nothing behind
 */
export async function writeFileAtomically(path: string, text: string): Promise<void> {
  // A name that nobody else has; opened so that no link laid out under it is followed.
  const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await writeAndSync(await open(draft, 'wx', 0o600), text);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** The system's code of a fault, such as `EROFS`. */
export function systemErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
}

async function writeAndSync(file: FileHandle, text: string): Promise<void> {
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The new name is on the disk as well; Windows knows no such thing. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
