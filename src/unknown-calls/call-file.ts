/**
 * The file of unknown calls, which one process appends to: each call synchronously before it is sent, its end in batches after its response.
 * What is written survives the death of the process, not of the node or its power: nothing is synchronised with the disk. A lost end
 * over-reports, a lost call would under-report.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fchmodSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { realpathSync, renameSync, rmSync, writeSync } from 'node:fs';
import type { Cancel, Clock } from '../platform/clock.ts';
import { systemErrorCode } from '../platform/file-errors.ts';
import { formatInstant } from '../platform/instant-text.ts';
import type { EventObserver } from '../telemetry/events.ts';
import { formatCall, formatEnd, formatReason, isCallFile, listOpenCalls, type RecordedCall } from './call-records.ts';
import { lockForWriting } from './writer-lock.ts';

export interface CallFileOptions {
  readonly path: string;
  readonly clock: Clock;
  /** Gets the first write that fails, and the first one that works again. */
  readonly observe: EventObserver;
  /** Default: that of node:fs. */
  readonly write?: (fd: number, bytes: Buffer) => number;
}

/** The records that another process adds, to settle calls. */
export function settledPathOf(path: string): string {
  return `${path}.settled`;
}

/** Empty when no call has been settled, or when that cannot be known: then they stay open. */
export function readSettled(path: string): string {
  try {
    return readFileSync(settledPathOf(path), 'utf8');
  } catch {
    return '';
  }
}

/** After this time ends are written without waiting for the next call. */
const FLUSH_INTERVAL_MS = 50;
/** More ends than a full disk may keep in memory are dropped. */
const MAX_PENDING_CHARS = 32 * 1024;
/** A longer file is compacted; what is left after that may have twice its size. */
const COMPACTED_FROM_BYTES = 1024 * 1024;
/** After a failure. */
const NEXT_COMPACTION_MS = 10_000;

const SETTING = 'unknownCalls.file (SIDECAR_UNKNOWN_CALLS_FILE)';

/** A full disk takes a part of a write before it refuses the next one. */
const SHORT_WRITE = Object.assign(new Error('a short write'), { code: 'ENOSPC' });

const PRIVATE_MODE = 0o600;

export class CallFile {
  readonly #options: CallFileOptions;
  readonly #path: string;
  readonly #unlock: () => void;
  readonly #run: string;
  readonly #write: NonNullable<CallFileOptions['write']>;
  #calls = 0;
  #fd: number;
  #size = 0;
  #limit = COMPACTED_FROM_BYTES;
  #compactsFrom = -Infinity;
  /** The line before may have no end. */
  #isTorn: boolean;
  #isFailing = false;
  #pending = '';
  #cancelFlush: Cancel | undefined;

  /** Opens or creates it, and keeps its open calls. @throws Error for the operator; another process may be writing to the file */
  static async open(options: CallFileOptions): Promise<CallFile> {
    let unlock: (() => void) | undefined;
    try {
      // Only a file that exists has a real path. Until it is locked, its writer may replace it.
      closeSync(openSync(options.path, 'a+', PRIVATE_MODE));
      const path = realpathSync(options.path);
      unlock = await lockForWriting(path);
      if (unlock === undefined) throw new Error('another process writes to it, and a file has one writer');
      return new CallFile({ ...options, path }, unlock);
    } catch (error) {
      unlock?.();
      const why = error instanceof Error && !('code' in error) ? error.message : systemErrorCode(error);
      throw new Error(`${SETTING}: ${JSON.stringify(options.path)} cannot be used: ${why}`, { cause: error });
    }
  }

  /** @param options with the real path */
  private constructor(options: CallFileOptions, unlock: () => void) {
    this.#options = options;
    this.#write = options.write ?? writeSync;
    this.#path = options.path;
    this.#unlock = unlock;
    this.#fd = openSync(options.path, 'a+', PRIVATE_MODE);
    const { mode } = fstatSync(this.#fd);
    const text = this.#read();
    if (!isCallFile(text)) throw new Error('it holds something else than unknown calls');
    this.#isTorn = text !== '' && !text.endsWith('\n');
    this.#run = chooseRunName(text + readSettled(options.path));
    if ((mode & 0o077) !== 0) fchmodSync(this.#fd, PRIVATE_MODE);
    if (text !== '') this.#compact();
  }

  /** Records a call that is about to be sent. @returns the id of its record; undefined when it could not be written */
  add(call: Omit<RecordedCall, 'id' | 'at'>): string | undefined {
    const id = `${this.#run}-${String(++this.#calls)}`;
    const at = formatInstant(this.#options.clock.wallNow());
    if (this.#append(formatCall({ id, at, ...call }))) return id;
    // All of its line but the line feed may be in the file.
    if (this.#isTorn) this.#defer(formatEnd(id));
    return undefined;
  }

  /**
   * @param code why the client does not know the outcome; undefined: it does
   * @param status of a response that the client did not get as a whole
   */
  conclude(id: string, code: string | undefined, status: number | undefined): void {
    this.#defer(code === undefined ? formatEnd(id) : formatReason(id, code, status));
  }

  /** Writes the last ends. Nothing can be recorded afterwards. */
  close(): void {
    this.#flush();
    this.#cancelFlush?.();
    // No flush is due from now on, and no other file gets a late record.
    this.#cancelFlush = () => undefined;
    closeSync(this.#fd);
    this.#fd = -1;
    this.#unlock();
  }

  #defer(line: string): void {
    if (this.#pending.length < MAX_PENDING_CHARS) this.#pending += line;
    this.#cancelFlush ??= this.#options.clock.after(FLUSH_INTERVAL_MS, () => {
      this.#cancelFlush = undefined;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#pending !== '') this.#append('');
    // One that was deleted comes back with its open calls.
    const isDue = this.#size > this.#limit || fstatSync(this.#fd).nlink === 0;
    if (isDue && this.#options.clock.now() >= this.#compactsFrom) this.#compact();
  }

  /** Writes what is pending and `line` at once. */
  #append(line: string): boolean {
    const bytes = Buffer.from(`${this.#isTorn ? '\n' : ''}${this.#pending}${line}`);
    try {
      const written = this.#write(this.#fd, bytes);
      this.#size += written;
      this.#isTorn = written < bytes.length;
      if (this.#isTorn) throw SHORT_WRITE;
    } catch (error) {
      this.#report(systemErrorCode(error));
      return false;
    }
    this.#pending = '';
    if (this.#isFailing) this.#report(undefined);
    return true;
  }

  /** Replaces the file by one with its open calls alone. One that cannot be replaced goes on growing. */
  #compact(): void {
    const temporary = `${this.#path}.new`;
    let fd: number | undefined;
    try {
      const bytes = Buffer.from(listOpenCalls(this.#read(), readSettled(this.#path)).map(formatCall).join(''));
      // Left by a process that was killed meanwhile.
      rmSync(temporary, { force: true });
      fd = openSync(temporary, 'ax+', PRIVATE_MODE);
      if (writeSync(fd, bytes) < bytes.length) throw SHORT_WRITE;
      renameSync(temporary, this.#path);
      closeSync(this.#fd);
      this.#fd = fd;
      this.#size = bytes.length;
      this.#limit = Math.max(COMPACTED_FROM_BYTES, 2 * bytes.length);
      this.#isTorn = false;
    } catch (error) {
      if (fd !== undefined) {
        closeSync(fd);
        rmSync(temporary, { force: true });
      }
      this.#compactsFrom = this.#options.clock.now() + NEXT_COMPACTION_MS;
      const message = `${SETTING}: ${JSON.stringify(this.#path)} cannot be replaced by a shorter one (${systemErrorCode(error)})`;
      this.#options.observe({ kind: 'warning', message });
    }
  }

  /** By its descriptor: its name may be gone. */
  #read(): string {
    const stats = fstatSync(this.#fd);
    if (!stats.isFile()) throw new Error('it is not a regular file');
    const bytes = Buffer.alloc(stats.size);
    return bytes.toString('utf8', 0, readSync(this.#fd, bytes, 0, bytes.length, 0));
  }

  #report(code: string | undefined): void {
    const phase = code === undefined ? 'works' : this.#isFailing ? 'fails-still' : 'fails';
    this.#isFailing = code !== undefined;
    this.#options.observe({ kind: 'unknown-calls-file', phase, code });
  }
}

/** Five letters, easy to type, that no record of an earlier process begins with. */
function chooseRunName(known: string): string {
  for (;;) {
    const name = Array.from(randomBytes(5), (byte) => 'bcdfghjkmnpqrstvwxyz'.charAt(byte % 20)).join('');
    if (!known.includes(`"${name}-`)) return name;
  }
}
