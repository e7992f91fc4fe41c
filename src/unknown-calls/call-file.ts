/**
 * The file of unknown calls, which one process appends to: each call synchronously before it is sent, its end in batches after its response.
 * What is written survives the death of the process, not of the node or its power: nothing is synchronised with the disk. A lost end
 * over-reports, a lost call would under-report. Another program may rename, delete, shorten or write to the file: compaction.ts copies.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, constants, fchmodSync, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
import { realpathSync, renameSync, rmSync, writeSync, type BigIntStats } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import type { Cancel, Clock } from '../platform/clock.ts';
import { systemErrorCode } from '../platform/file-errors.ts';
import { formatInstant } from '../platform/instant-text.ts';
import type { EventObserver } from '../telemetry/events.ts';
import { formatCall, formatEnd, formatReason, isCallFile, listEnded, OpenCalls } from './call-records.ts';
import type { OpenCall, RecordedCall } from './call-records.ts';
import { copyOpenCalls, SHORT_WRITE } from './compaction.ts';
import { createFault, openRegular, readLines } from './file-lines.ts';
import { lockForWriting } from './writer-lock.ts';

export interface CallFileOptions {
  readonly path: string;
  readonly clock: Clock;
  /** Gets the first write that fails, and the first one that works again. */
  readonly observe: EventObserver;
  /** Default: that of node:fs. */
  readonly write?: (fd: number, bytes: Buffer) => number;
  /** Default: that of node:fs. */
  readonly fstat?: (fd: number) => Pick<BigIntStats, 'dev' | 'ino' | 'size'>;
}

/** The records that another process adds, to settle calls. */
export function settledPathOf(path: string): string {
  return `${path}.settled`;
}

/** Calls that have been settled. Empty when there are none, or when that cannot be known: then they stay open. */
function readSettled(path: string): Set<string> {
  let fd: number | undefined;
  const settled = new Set<string>();
  try {
    fd = openRegular(settledPathOf(path));
    for (const lines of readLines(fd)) for (const id of listEnded(lines)) settled.add(id);
  } catch {
    settled.clear();
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
  return settled;
}

/** The open calls of a file that another process may be writing to, in their order. @throws Error with a code */
export function readOpenCalls(path: string): readonly OpenCall[] {
  const fd = openRegular(path);
  try {
    checkContents(fd);
    const open = new OpenCalls(readSettled(path));
    for (const lines of readLines(fd)) open.read(lines);
    return open.calls;
  } finally {
    closeSync(fd);
  }
}

/** @throws Error with the code EEXIST: it must not be overwritten */
function checkContents(fd: number): void {
  const bytes = Buffer.alloc(CHECKED_BYTES);
  if (!isCallFile(bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, 0))))
    throw createFault('EEXIST', 'it holds something else than unknown calls');
}

/** Opens or creates the file of this process, for its user alone. @throws Error with a code */
function openOwn(path: string): number {
  const fd = openRegular(path, OPEN_FLAGS);
  try {
    checkContents(fd);
    if ((fstatSync(fd).mode & 0o077) !== 0) fchmodSync(fd, PRIVATE_MODE);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** A file that holds something else shows that at its beginning. */
const CHECKED_BYTES = 64 * 1024;
/** After this time ends are written without waiting for the next call, and the file is compared with its name. */
const FLUSH_INTERVAL_MS = 50;
/** While the file cannot be used. */
const RETRY_INTERVAL_MS = 1000;
/** More ends than a full disk may keep in memory are dropped. */
const MAX_PENDING_CHARS = 32 * 1024;
/** A longer file is compacted; what is left after that may have twice its size. */
const COMPACTED_FROM_BYTES = 1024 * 1024;
/** After a failure. */
const NEXT_COMPACTION_MS = 10_000;
/** How long a slice of a compaction takes, and the pause before the next one. */
const [SLICE_MS, SLICE_PAUSE_MS] = [4, 4];

const SETTING = 'unknownCalls.file (SIDECAR_UNKNOWN_CALLS_FILE)';

const PRIVATE_MODE = 0o600;
const NO_ENTRY = { bigint: true, throwIfNoEntry: false } as const;
/** A link that another program has put in the place of the file is not followed. */
const OPEN_FLAGS = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;

export class CallFile {
  readonly #options: CallFileOptions;
  readonly #path: string;
  readonly #unlock: () => void;
  readonly #write: NonNullable<CallFileOptions['write']>;
  readonly #fstat: NonNullable<CallFileOptions['fstat']>;
  #run = '';
  #calls = 0;
  #fd: number;
  /** As written by this process. */
  #size: bigint;
  #limit = COMPACTED_FROM_BYTES;
  #compactsFrom = -Infinity;
  #compaction: Generator<void, void> | undefined;
  /** The line before may have no end. */
  #isTorn: boolean;
  #fault: string | undefined;
  /** The file cannot be found by its name: what would be written to it could not be found either. */
  #isAstray = false;
  /** Another program writes to it: it is not replaced. */
  #isShared = false;
  readonly #warned = new Set<string>();
  #pending = '';
  #cancelFlush: Cancel | undefined;

  /** Opens or creates it, and keeps its open calls. @throws Error for the operator; another process may be writing to the file */
  static async open(options: CallFileOptions): Promise<CallFile> {
    let unlock = (): void => undefined;
    try {
      // Only a file that exists has a real path. Until it is locked, its writer may replace it.
      closeSync(openSync(options.path, 'a+', PRIVATE_MODE));
      const path = realpathSync(options.path);
      const locking = await lockForWriting(path);
      if (locking.kind === 'written') throw new Error('another process writes to it, and a file has one writer');
      if (locking.kind === 'locked') ({ unlock } = locking);
      const file = new CallFile({ ...options, path }, unlock);
      if (locking.kind === 'is-taken') {
        // What holds it may be a sidecar that does not respond.
        file.#isShared = true;
        file.#warn('has no lock, whose name another program has taken: it is not compacted');
      }
      await file.#start();
      return file;
    } catch (error) {
      unlock();
      const why = error instanceof Error && !('syscall' in error) ? error.message : systemErrorCode(error);
      throw new Error(`${SETTING}: ${JSON.stringify(options.path)} cannot be used: ${why}`, { cause: error });
    }
  }

  /** @param options with the real path */
  private constructor(options: CallFileOptions, unlock: () => void) {
    this.#options = options;
    this.#write = options.write ?? writeSync;
    this.#fstat = options.fstat ?? ((fd) => fstatSync(fd, { bigint: true }));
    this.#path = options.path;
    this.#unlock = unlock;
    this.#fd = openOwn(options.path);
    this.#size = this.#fstat(this.#fd).size;
    this.#isTorn = this.#size > 0n;
  }

  /** Reads what was left, and writes it anew without what has ended. */
  async #start(): Promise<void> {
    const known = new OpenCalls(readSettled(this.#path));
    for (const lines of readLines(this.#fd)) {
      known.read(lines);
      await setImmediate();
    }
    this.#run = chooseRunName(known.runs);
    if (this.#size === 0n || this.#isShared) return;
    this.#compaction = this.#compact();
    while (this.#runSlice()) await setImmediate();
  }

  /** Why calls cannot be recorded at the moment: the system's error code. */
  get fault(): string | undefined {
    return this.#fault;
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
    this.#cancelFlush?.();
    if (this.#compaction === undefined) this.#examine();
    while (this.#compaction !== undefined) this.#runSlice();
    if (this.#pending !== '') this.#append('');
    this.#cancelFlush?.();
    // No flush is due from now on, and no other file gets a late record.
    this.#cancelFlush = () => undefined;
    closeSync(this.#fd);
    this.#fd = -1;
    this.#unlock();
  }

  #defer(line: string): void {
    if (this.#pending.length < MAX_PENDING_CHARS) this.#pending += line;
    this.#flushAfter(FLUSH_INTERVAL_MS);
  }

  #flushAfter(delayMs: number): void {
    this.#cancelFlush ??= this.#options.clock.after(delayMs, () => {
      this.#cancelFlush = undefined;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#compaction === undefined) this.#examine();
    if (this.#pending !== '' && !this.#isAstray) this.#append('');
    const wasAstray = this.#isAstray;
    if (this.#compaction !== undefined && this.#runSlice()) this.#flushAfter(SLICE_PAUSE_MS);
    else if (this.#isAstray) this.#flushAfter(RETRY_INTERVAL_MS);
    // Ends have waited for the file, which has just been found again.
    else if (wasAstray && this.#pending !== '') this.#append('');
  }

  /** Compares the file with its name and with what was written to it. */
  #examine(): void {
    try {
      const own = this.#fstat(this.#fd);
      const isDue = this.#options.clock.now() >= this.#compactsFrom;
      if (!isSameFile(own, lstatSync(this.#path, NO_ENTRY))) {
        this.#warn('was renamed or removed by another program: it is created again, with its open calls');
        this.#compaction = this.#moveToName();
        return;
      }
      this.#isAstray = false;
      if (own.size > this.#size) this.#isShared = true;
      if (own.size > this.#size) this.#warn('is written by another program too: it is not compacted any more');
      if (own.size < this.#size) this.#warn('was shortened by another program: records are lost');
      if (own.size !== this.#size) this.#isTorn = true;
      this.#size = own.size;
      if (this.#size > this.#limit && isDue && !this.#isShared) this.#compaction = this.#compact();
    } catch (error) {
      this.#isAstray = true;
      this.#report(systemErrorCode(error));
    }
  }

  /** Writes what is pending and `line` at once. */
  #append(line: string): boolean {
    const bytes = Buffer.from(`${this.#isTorn ? '\n' : ''}${this.#pending}${line}`);
    try {
      if (this.#isAstray) throw createFault(this.#fault);
      const written = this.#write(this.#fd, bytes);
      this.#size += BigInt(written);
      this.#isTorn = written < bytes.length;
      if (this.#isTorn) throw SHORT_WRITE;
    } catch (error) {
      this.#report(systemErrorCode(error));
      return false;
    }
    this.#pending = '';
    if (this.#fault !== undefined) this.#report(undefined);
    this.#flushAfter(FLUSH_INTERVAL_MS);
    return true;
  }

  /** @returns whether more is to be done */
  #runSlice(): boolean {
    const endsAt = this.#options.clock.now() + SLICE_MS;
    do if (this.#compaction?.next().done !== false) this.#compaction = undefined;
    while (this.#compaction !== undefined && this.#options.clock.now() < endsAt);
    return this.#compaction !== undefined;
  }

  /** Replaces the file by one with its open calls alone. One that cannot be replaced goes on growing. */
  *#compact(): Generator<void, void> {
    const temporary = `${this.#path}.new`;
    try {
      // Left by a process that was killed meanwhile.
      rmSync(temporary, { force: true });
      yield* this.#continueIn(openSync(temporary, 'ax+', PRIVATE_MODE), temporary);
    } catch (error) {
      this.#compactsFrom = this.#options.clock.now() + NEXT_COMPACTION_MS;
      this.#warn(`cannot be replaced by a shorter one (${systemErrorCode(error)})`);
    }
  }

  /** Goes on with the file that has the name now, or with a new one. */
  *#moveToName(): Generator<void, void> {
    try {
      yield* this.#continueIn(openOwn(this.#path));
      this.#isAstray = false;
    } catch (error) {
      this.#isAstray = true;
      this.#report(systemErrorCode(error));
    }
  }

  /** Copies the open calls to another file, and goes on in that. @param temporary its name, if it is to replace the file */
  *#continueIn(fd: number, temporary?: string): Generator<void, void> {
    try {
      yield* copyOpenCalls(this.#fd, fd, readSettled(this.#path));
      if (temporary !== undefined) {
        if (!this.#isUnchanged()) throw createFault('EBUSY');
        renameSync(temporary, this.#path);
      }
    } catch (error) {
      closeSync(fd);
      if (temporary !== undefined) rmSync(temporary, { force: true });
      throw error;
    }
    closeSync(this.#fd);
    this.#fd = fd;
    this.#size = this.#fstat(fd).size;
    this.#limit = Math.max(COMPACTED_FROM_BYTES, 2 * Number(this.#size));
    this.#isTorn = false;
  }

  /** Whether no other program has written to the file or replaced it, as far as can be seen. */
  #isUnchanged(): boolean {
    const own = this.#fstat(this.#fd);
    return own.size === this.#size && isSameFile(own, lstatSync(this.#path, NO_ENTRY));
  }

  /** Once for each message. @param what follows the name of the file */
  #warn(what: string): void {
    const message = `${SETTING}: ${JSON.stringify(this.#path)} ${what}`;
    if (!this.#warned.has(message)) this.#options.observe({ kind: 'warning', message });
    this.#warned.add(message);
  }

  #report(code: string | undefined): void {
    const phase = code === undefined ? 'works' : this.#fault === undefined ? 'fails' : 'fails-still';
    this.#fault = code;
    this.#options.observe({ kind: 'unknown-calls-file', phase, code });
  }
}

type FileId = Pick<BigIntStats, 'dev' | 'ino'>;

function isSameFile(one: FileId, other: FileId | undefined): boolean {
  return one.ino === other?.ino && one.dev === other.dev;
}

/** Five letters, easy to type, that no record of an earlier process begins with. */
function chooseRunName(known: ReadonlySet<string>): string {
  for (;;) {
    const name = Array.from(randomBytes(5), (byte) => 'bcdfghjkmnpqrstvwxyz'.charAt(byte % 20)).join('');
    if (!known.has(name)) return name;
  }
}
