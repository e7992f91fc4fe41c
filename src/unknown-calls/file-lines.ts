/** Reads the lines of a file in pieces: neither its size nor a line without an end costs memory. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** Far above a record. A longer line is left out. */
const MAX_LINE_BYTES = 64 * 1024;
const LINE_FEED = 10;

/**
 * Whole lines with their ends, up to 64 KiB at a time; the last line may have no end.
 * @param to bytes of the file that are read. Default: all
 * @throws Error with a code
 */
export function* readLines(fd: number, to = Infinity): Generator<string> {
  const bytes = Buffer.alloc(MAX_LINE_BYTES);
  let [at, kept, isTooLong] = [0, 0, false];
  for (;;) {
    const read = at < to ? readSync(fd, bytes, kept, Math.min(bytes.length - kept, to - at), at) : 0;
    if (read === 0) break;
    at += read;
    kept += read;
    const end = bytes.lastIndexOf(LINE_FEED, kept - 1) + 1;
    if (end > 0) {
      yield bytes.toString('utf8', isTooLong ? bytes.indexOf(LINE_FEED) + 1 : 0, end);
      bytes.copyWithin(0, end, kept);
    }
    isTooLong = end === 0 && (isTooLong || kept === bytes.length);
    kept = isTooLong ? 0 : kept - end;
  }
  if (kept > 0) yield bytes.toString('utf8', 0, kept);
}

/** Opens a file, by default for reading; a new one is its owner's. A pipe could block the process. @throws Error with a code */
export function openRegular(path: string, flags = constants.O_RDONLY): number {
  const fd = openSync(path, flags | constants.O_NONBLOCK, 0o600);
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  throw createFault('EINVAL', 'it is not a regular file');
}

/** An error as the file system gives it. @param why shown to the operator at the start. Default: the code is */
export function createFault(code: string | undefined, why?: string): Error {
  return Object.assign(new Error(why), { code });
}
