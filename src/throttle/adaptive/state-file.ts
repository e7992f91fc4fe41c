/**
 * Keeps what `auto` learned in a file: read once at the start, written when it has changed and at the end. An unusable file and a
 * directory that cannot be written each cause one warning and no failure. learned-state.ts owns the text of the file.
 */
import { randomBytes } from 'node:crypto';
import { open, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Cancel, Clock } from '../../platform/clock.ts';
import { writeFileAtomically } from '../../platform/atomic-write.ts';
import { systemErrorCode } from '../../platform/file-errors.ts';
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
  /** By the names of the throttles. */
  readonly owners: ReadonlyMap<string, LimitOwner>;
  readonly clock: Clock;
  /** Reports a problem to the operator. */
  readonly warn: (message: string) => void;
}

/** Least time between two writes, milliseconds. */
const WRITE_INTERVAL_MS = 10_000;
/** A longer file is not a state file. */
const MAX_BYTES_PER_LIMIT = 256 * 1024;

type Snapshots = ReadonlyMap<string, LearnedState | undefined>;

/** One file for all throttles with `rate: auto`. */
export class StateFile {
  readonly #options: StateFileOptions;
  #snapshot: () => Snapshots = () => new Map();
  #cancel: Cancel | undefined;
  /** JSON of the learned limits as this process wrote them last. */
  #lastWritten = '';
  #pendingWrite: Promise<void> = Promise.resolve();
  #hasWarned = false;

  constructor(options: StateFileOptions) {
    this.#options = options;
  }

  /** Reads the usable states by throttle, and checks that the file can be written. Never rejects. */
  async restore(): Promise<ReadonlyMap<string, LearnedState>> {
    const states = await this.#read();
    await this.#checkWritable();
    return states;
  }

  /** Writes the result of `snapshot` every 10 s from now on, if it has changed. */
  startWriting(snapshot: () => Snapshots): void {
    this.#snapshot = snapshot;
    this.#cancel = this.#options.clock.after(WRITE_INTERVAL_MS, () => {
      this.startWriting(snapshot);
      void this.#write();
    });
  }

  /** Writes for the last time. Never rejects. */
  async stop(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    await this.#write();
  }

  async #read(): Promise<Map<string, LearnedState>> {
    const { path, owners } = this.#options;
    try {
      const parsed = parseStateFile(await readBounded(path, MAX_BYTES_PER_LIMIT * owners.size));
      if (parsed.kind === 'read') return this.#readLimits(parsed.limits);
      this.#warn(`${JSON.stringify(path)} ${parsed.reason}: the limit is learned anew`);
    } catch (error) {
      // The first start finds no file.
      if (!['ENOENT', 'ENOTDIR'].includes(systemErrorCode(error)))
        this.#warn(`${JSON.stringify(path)} cannot be read (${systemErrorCode(error)}): the limit is learned anew`);
    }
    return new Map();
  }

  /** Ignores entries of throttles that no longer exist. */
  #readLimits(limits: ReadonlyMap<string, unknown>): Map<string, LearnedState> {
    const { path, owners, clock } = this.#options;
    const states = new Map<string, LearnedState>();
    for (const [name, owner] of owners) {
      if (!limits.has(name)) continue;
      const parsed = parseLearnedState(limits.get(name), owner, clock.wallNow());
      const entry = owners.size === 1 ? '' : `, ${name}:`;
      if (parsed.kind === 'read') states.set(name, parsed.state);
      else this.#warn(`${JSON.stringify(path)}${entry} ${parsed.reason}: the limit is learned anew`);
    }
    return states;
  }

  async #checkWritable(): Promise<void> {
    const { path } = this.#options;
    const temporaryPath = `${path}.${randomBytes(6).toString('hex')}.tmp`;
    try {
      await (await open(temporaryPath, 'wx', 0o600)).close();
      await rm(temporaryPath);
    } catch (error) {
      this.#warnOnce(error);
    }
  }

  /** Writes are serialized, so that an older snapshot never replaces a newer one. */
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
  // Opening a pipe without a writer would never return.
  if (!(await stat(path)).isFile()) throw Object.assign(new Error('not a regular file'), { code: 'EINVAL' });
  const file = await open(path, 'r');
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(largestBytes), 0, largestBytes, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
