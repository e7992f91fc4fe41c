/**
 * Copies the open calls of a file that goes on being written, and then what was appended meanwhile. The copy is whole when the generator has
 * ended; until then only the first file counts, so that a process may die at any moment.
 */
import { fstatSync, readSync, writeSync } from 'node:fs';
import { formatCall, OpenCalls } from './call-records.ts';
import { createFault, readLines } from './file-lines.ts';

const PIECE_BYTES = 64 * 1024;
const LINE_FEED = 10;

/** A full disk takes a part of a write before it refuses the next one. */
export const SHORT_WRITE = createFault('ENOSPC');

/**
 * Yields after each piece, about a millisecond, and not between the last piece and its end.
 * @param to one that holds records gets all others too: it may lack the ends of its own
 * @throws Error with a code
 */
export function* copyOpenCalls(from: number, to: number, settled: ReadonlySet<string>): Generator<void, void> {
  const holdsRecords = fstatSync(to).size > 0;
  let copied = 0;
  // The last line may have no end.
  if (holdsRecords) writeWhole(to, Buffer.from('\n'));
  else copied = yield* copyOpenAlone(from, to, settled);
  const bytes = Buffer.alloc(PIECE_BYTES);
  for (let isLineEnded = true; ;) {
    const read = readSync(from, bytes, 0, bytes.length, copied);
    copied += read;
    if (read > 0) isLineEnded = bytes[read - 1] === LINE_FEED;
    const isLast = read < bytes.length;
    writeWhole(to, Buffer.concat([bytes.subarray(0, read), Buffer.from(isLast && !isLineEnded ? '\n' : '')]));
    if (isLast) return;
    yield;
  }
}

/** @returns the bytes of the first file that were read */
function* copyOpenAlone(from: number, to: number, settled: ReadonlySet<string>): Generator<void, number> {
  const open = new OpenCalls(settled);
  const { size } = fstatSync(from);
  for (const lines of readLines(from, size)) {
    open.read(lines);
    yield;
  }
  let text = '';
  for (const call of open.calls) {
    text += formatCall(call);
    if (text.length < PIECE_BYTES) continue;
    writeWhole(to, Buffer.from(text));
    text = '';
    yield;
  }
  writeWhole(to, Buffer.from(text));
  return size;
}

function writeWhole(fd: number, bytes: Buffer): void {
  if (bytes.length > 0 && writeSync(fd, bytes) < bytes.length) throw SHORT_WRITE;
}
