/**
 * One writer for each file, as long as its process lives: the name of an abstract Unix socket, which the kernel frees at the end of the process
 * however it comes. Linux alone has them, and sees them within one network namespace: the containers of a pod share it.
 */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname } from 'node:path';

/** @param path without symbolic links @returns releases it; undefined: another process holds it */
export async function lockForWriting(path: string): Promise<(() => void) | undefined> {
  if (process.platform !== 'linux') return () => undefined;
  // Two containers may have one volume at two paths, and the file itself is replaced by its successors.
  const { dev, ino } = statSync(dirname(path), { bigint: true });
  const key = createHash('sha256').update(`${String(dev)}:${String(ino)}:${basename(path)}`);
  const server = createServer((socket) => socket.destroy()).unref();
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen(`\0bearer-sidecar-${key.digest('hex')}`, () => resolve(() => void server.close()));
  });
}
