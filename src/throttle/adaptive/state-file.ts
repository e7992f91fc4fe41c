/**
 * Keeps what `auto` has learned in a file: read once at the start, written when it has changed and at the end. A file that is no
 * use and a directory that cannot be written each cost one warning, and never the process. What the text says is learned-state.ts's.
 */
import { randomBytes } from 'node:crypto';
import { open, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Cancel, Clock } from '../../platform/clock.ts';
import { systemErrorCode, writeFileAtomically } from '../../platform/atomic-write.ts';
import {
  formatStateFile,
  formatLearnedState,
  parseStateFile,
  parseLearnedState,
  type LimitOwner,
} from './learned-state.ts';
import type { LearnedState } from '../throttle.ts';

export interface StateFileOptions {
  readonly path: string;
  /** Whose limits they are, by the names of their throttles. */
  readonly owners: ReadonlyMap<string, LimitOwner>;
  readonly clock: Clock;
  /** Told in words for the operator. */
  readonly warn: (message: string) => void;
}

/** Least time between two writes, milliseconds. */
const WRITE_INTERVAL_MS = 10_000;
/** A file that is longer than this for each limit is no state of ours. */
const MAX_BYTES_PER_LIMIT = 256 * 1024;

/** What each throttle has learned; undefined or left out: nothing. */
type Snapshots = ReadonlyMap<string, LearnedState | undefined>;

export class StateFile {
  readonly #options: StateFileOptions;
  #snapshot: () => Snapshots = () => new Map();
  #cancel: Cancel | undefined;
  /** What the file says of the governors, as far as this process has written it. */
  #lastWritten = '';
  #pendingWrite: Promise<void> = Promise.resolve();
  #hasWarned = false;

  constructor(options: StateFileOptions) {
    this.#options = options;
  }

  /** What an earlier process left, as far as it is of use, by throttle. Also tries whether the file can be written. Never rejects. */
  async restore(): Promise<ReadonlyMap<string, LearnedState>> {
    const states = await this.#read();
    await this.#checkWritable();
    return states;
  }

  /** From now on writes what `snapshot` gives whenever it has changed, every 10 s at most. */
  startWriting(snapshot: () => Snapshots): void {
    this.#snapshot = snapshot;
    this.#cancel = this.#options.clock.after(WRITE_INTERVAL_MS, () => {
      this.startWriting(snapshot);
      void this.#write();
    });
  }

  /** Writes a last time. Never rejects. */
  async stop(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    await this.#write();
  }

  async #read(): Promise<Map<string, LearnedState>> {
    const { path, owners } = this.#options;
    try {
      const reading = parseStateFile(await readBounded(path, MAX_BYTES_PER_LIMIT * owners.size));
      if (reading.kind === 'read') return this.#readLimits(reading.limits);
      this.#warn(`${JSON.stringify(path)} ${reading.reason}: the limit is learned anew`);
    } catch (error) {
      // The first start finds none.
      if (!['ENOENT', 'ENOTDIR'].includes(systemErrorCode(error)))
        this.#warn(`${JSON.stringify(path)} cannot be read (${systemErrorCode(error)}): the limit is learned anew`);
    }
    return new Map();
  }

  /** A throttle that is new has nothing there, and one that is gone is not missed. */
  #readLimits(limits: ReadonlyMap<string, unknown>): Map<string, LearnedState> {
    const { path, owners, clock } = this.#options;
    const states = new Map<string, LearnedState>();
    for (const [name, owner] of owners) {
      if (!limits.has(name)) continue;
      const reading = parseLearnedState(limits.get(name), owner, clock.wallNow());
      const what = owners.size === 1 ? '' : `, ${name}:`;
      if (reading.kind === 'read') states.set(name, reading.state);
      else this.#warn(`${JSON.stringify(path)}${what} ${reading.reason}: the limit is learned anew`);
    }
    return states;
  }

  async #checkWritable(): Promise<void> {
    const { path } = this.#options;
    const trial = `${path}.${randomBytes(6).toString('hex')}.tmp`;
    try {
      await (await open(trial, 'wx', 0o600)).close();
      await rm(trial);
    } catch (error) {
      this.#warnOnce(error);
    }
  }

  /** One after another, so that an older snapshot never replaces a newer one. */
  #write(): Promise<void> {
    this.#pendingWrite = this.#pendingWrite.then(() => this.#writeChanged());
    return this.#pendingWrite;
  }

  async #writeChanged(): Promise<void> {
    try {
      const { path, owners } = this.#options;
      const limits = new Map<string, object>();
      const governors: object[] = [];
      for (const [name, state] of this.#snapshot()) {
        const owner = owners.get(name);
        if (state === undefined || owner === undefined) continue;
        limits.set(name, formatLearnedState(state, owner));
        governors.push([name, state.governor]);
      }
      const learned = JSON.stringify(governors);
      if (limits.size === 0 || learned === this.#lastWritten) return;
      await writeFileAtomically(path, formatStateFile(limits));
      this.#lastWritten = learned;
      this.#hasWarned = false;
    } catch (error) {
      this.#warnOnce(error);
    }
  }

  #warnOnce(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const directory = JSON.stringify(dirname(this.#options.path));
    this.#warn(
      `no file can be written in ${directory} (${systemErrorCode(error)}): what is learned ends with this process`,
    );
  }

  #warn(message: string): void {
    this.#options.warn(`throttle.stateFile: ${message}`);
  }
}

/** @throws Error with a code */
async function readBounded(path: string, largestBytes: number): Promise<string> {
  // Opening a pipe that nobody writes to would hang for ever.
  if (!(await stat(path)).isFile()) throw Object.assign(new Error('not a regular file'), { code: 'EINVAL' });
  const file = await open(path, 'r');
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(largestBytes), 0, largestBytes, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
