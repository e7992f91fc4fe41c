/**
 * Keeps what `auto` learned in a file, for whom and when, so that no process begins with the limit of another client or of yesterday. It is
 * read once at the start, written when it has changed and at the end. An unusable file and a directory that cannot be written each cause one
 * warning and no failure. adaptive/limit-snapshot.ts owns what is learned.
 */
import { randomBytes } from 'node:crypto';
import { open, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Cancel, Clock } from '../platform/clock.ts';
import { writeFileAtomically } from '../platform/atomic-write.ts';
import { systemErrorCode } from '../platform/file-errors.ts';
import type { LearnedState } from './throttle.ts';

/** Whose limit was learned; both members must be equal. */
export interface LimitOwner {
  /** Origin of the upstream. */
  readonly upstream: string;
  /** Hash of the client id. */
  readonly client: string;
}

/** The reason follows the file's name in a warning. */
interface Unusable {
  readonly kind: 'unusable';
  readonly reason: string;
}

export type LearnedStateParseResult = { readonly kind: 'read'; readonly state: LearnedState } | Unusable;

/** The entries of the file by the names of their throttles, not parsed yet. */
export type StateFileParseResult = { readonly kind: 'read'; readonly limits: ReadonlyMap<string, unknown> } | Unusable;

/** Limits change with contracts and seasons. */
const MAX_AGE_MS = 24 * 3_600_000;
/** The clocks of two machines differ. */
const MAX_CLOCK_SKEW_MS = 60_000;
/** Version 1 held a single limit. */
const FILE_VERSION = 2;
const UNKNOWN_FORMAT = 'is not what a sidecar writes';

export interface StateFileOptions {
  readonly path: string;
  /** By the names of the throttles. */
  readonly owners: ReadonlyMap<string, LimitOwner>;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** Least time between two writes, milliseconds. */
const WRITE_INTERVAL_MS = 10_000;
/** A longer file is not a state file. */
const MAX_BYTES_PER_LIMIT = 256 * 1024;

type Snapshots = ReadonlyMap<string, LearnedState | undefined>;

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

export function formatLearnedState({ version, wallAt, governor }: LearnedState, owner: LimitOwner): object {
  return { version, ...owner, wallAt, governor };
}

/** @param limits entries by the names of their throttles */
export function formatStateFile(limits: ReadonlyMap<string, object>): string {
  return `${JSON.stringify({ version: FILE_VERSION, limits: [...limits] })}\n`;
}

/** Checks the file's form; parseLearnedState checks each entry. */
export function parseStateFile(text: string): StateFileParseResult {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null || !('version' in value)) return unusable(UNKNOWN_FORMAT);
  if (value.version !== FILE_VERSION) return unusable('is of another version');
  const entries = 'limits' in value && Array.isArray(value.limits) ? (value.limits as unknown[]) : undefined;
  if (entries?.every(isLimitEntry) !== true) return unusable(UNKNOWN_FORMAT);
  return { kind: 'read', limits: new Map(entries) };
}

/** @param wallNow epoch milliseconds */
export function parseLearnedState(value: unknown, owner: LimitOwner, wallNow: number): LearnedStateParseResult {
  if (typeof value !== 'object' || value === null) return unusable(UNKNOWN_FORMAT);
  const { version, upstream, client, wallAt, governor } = value as Readonly<Record<string, unknown>>;
  if (version !== 1) return unusable('is of another version');
  if (typeof wallAt !== 'number' || !Number.isFinite(wallAt) || typeof governor !== 'object' || governor === null)
    return unusable(UNKNOWN_FORMAT);
  if (upstream !== owner.upstream) return unusable('was learned from another upstream');
  if (client !== owner.client) return unusable('was learned with another client id');
  if (wallNow - wallAt > MAX_AGE_MS) return unusable('is more than a day old');
  if (wallAt - wallNow > MAX_CLOCK_SKEW_MS) return unusable('is dated in the future');
  return { kind: 'read', state: { version, wallAt, governor } };
}

function isLimitEntry(entry: unknown): entry is readonly [string, unknown] {
  return Array.isArray(entry) && entry.length === 2 && typeof entry[0] === 'string';
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unusable(reason: string): Unusable {
  return { kind: 'unusable', reason };
}
