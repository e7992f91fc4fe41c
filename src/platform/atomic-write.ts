/**
 * Writes a small file atomically: a reader sees the old text or the new one, even if the process or the machine stops in between.
 * The mode lets only this user read it.
 */
import { randomBytes } from 'node:crypto';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Needs write permission for the directory: a temporary file beside the file replaces it.
 * @throws Error with a code; the temporary file is removed
 */
export async function writeFileAtomically(path: string, text: string): Promise<void> {
  // A random name with the flag `wx`, so that a link planted under the name is not followed.
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await writeAndSync(await open(temporary, 'wx', 0o600), text);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

async function writeAndSync(file: FileHandle, text: string): Promise<void> {
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes the rename durable; Windows has no such call. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
