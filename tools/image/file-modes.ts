/**
 * Modes of the image's files. A cluster may run the image with any user and group 0 (OpenShift does), and COPY keeps the modes of the clone
 * that it copies from, in which another user may read nothing.
 */
import { chmodSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Lets every user read the files below a folder, enter its folders, and execute what its owner can execute. */
export function openToAllUsers(root: string): void {
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isDirectory() && !entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const { mode } = statSync(path);
    chmodSync(path, mode | ((mode & 0o100) === 0 ? 0o444 : 0o555));
  }
}
