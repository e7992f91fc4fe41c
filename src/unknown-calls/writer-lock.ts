/**
 * One writer for each file, as long as its process lives: the name of an abstract Unix socket, which the kernel frees at the end of the process
 * however it comes. Linux alone has them, and sees them within one network namespace: the containers of a pod share it. Any program can take
 * a name, so its holder shows that it may write to the file: it moves the time of the file when another process connects.
 */
import { createHash } from 'node:crypto';
import { stat, statSync, utimes } from 'node:fs';
import { connect, createServer } from 'node:net';
import { basename, dirname } from 'node:path';

/** `is-taken`: by a program that does not write to the file. */
export type Locking =
  | { readonly kind: 'locked'; readonly unlock: () => void }
  | { readonly kind: 'written' | 'is-taken' };

/** Longest wait for a holder. */
const RESPONSE_TIMEOUT_MS = 2000;

/** @param path without symbolic links, of a file that exists */
export async function lockForWriting(path: string): Promise<Locking> {
  if (process.platform !== 'linux') return { kind: 'locked', unlock: () => undefined };
  // Two containers may have one volume at two paths, and the file itself is replaced by its successors.
  const { dev, ino } = statSync(dirname(path), { bigint: true });
  const key = createHash('sha256').update(`${String(dev)}:${String(ino)}:${basename(path)}`);
  const name = `\0bearer-sidecar-${key.digest('hex')}`;
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    // Where the time cannot be moved, the other process takes the holder for a program that does not write.
    stat(path, (error, found) => {
      if (error === null) utimes(path, found.atime, new Date(found.mtimeMs + 2), () => socket.end());
      else socket.end();
    });
  }).unref();
  const taken = await new Promise<boolean>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(true);
      else reject(error);
    });
    server.listen(name, () => resolve(false));
  });
  if (!taken) return { kind: 'locked', unlock: () => void server.close() };
  return { kind: (await isTimeMoved(path, name)) ? 'written' : 'is-taken' };
}

/** Whether the file changes when its holder is asked. */
async function isTimeMoved(path: string, name: string): Promise<boolean> {
  const before = statSync(path).mtimeMs;
  await new Promise<void>((resolve) => {
    const socket = connect({ path: name }).setTimeout(RESPONSE_TIMEOUT_MS, () => socket.destroy());
    socket
      .on('error', () => socket.destroy())
      .on('close', () => resolve())
      .resume();
  });
  return statSync(path).mtimeMs !== before;
}
