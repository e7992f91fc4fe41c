/**
 * Keeps what `auto` learned and the counts of declared limits in a file, for whom and when, so that no process begins with the limit of
 * another client or of yesterday. It is read once at the start, written when it has changed and at the end. Counts are written together
 * with permits that may be used until the next write, so that after a crash they are too high by these at most, and never too low. An
 * unusable file and a directory that cannot be written each cause one warning and no failure. adaptive/limit-snapshot.ts owns what is learned.
 */
import { randomBytes } from 'node:crypto';
import { open, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Cancel, Clock } from '../platform/clock.ts';
import { writeFileAtomically } from '../platform/atomic-write.ts';
import { systemErrorCode } from '../platform/file-errors.ts';
import type { CountEntry } from './declared/counted-calls.ts';
import type { SavedLimit } from './declared/declared-limits.ts';
import { MAX_LANES } from './lanes/lane-set.ts';
import type { LearnedLane, LearnedState, Throttle } from './throttle.ts';

/** Whose limit was learned or counted; both members must be equal. */
export interface LimitOwner {
  /** Origin of the upstream. */
  readonly upstream: string;
  /** Hash of the client id. */
  readonly client: string;
}

/** What was read, or a reason that follows the file's name in a warning. */
export type Parsed<T> = ({ readonly kind: 'read' } & T) | { readonly kind: 'unusable'; readonly reason: string };

/** The entries of the file by the names of their throttles, not parsed yet. `counts` is empty in files of former versions. */
export interface StateFileEntries {
  readonly limits: ReadonlyMap<string, unknown>;
  readonly counts: ReadonlyMap<string, unknown>;
  /** As `SavedPart` saved it. */
  readonly successes: unknown;
}

/** What another room keeps in the file, in its own form. */
interface SavedPart {
  save(isLast: boolean): unknown;
  restore(saved: unknown): void;
}

/** Limits change with contracts and seasons. */
const MAX_AGE_MS = 24 * 3_600_000;
/** The clocks of two machines differ. */
const MAX_CLOCK_SKEW_MS = 60_000;
/** Version 1 held a single limit. */
const FILE_VERSION = 2;
const UNKNOWN_FORMAT = 'is not what a sidecar writes';
const ANEW = 'the limit is learned anew, and declared limits count from 0';

export interface StateFileOptions {
  readonly path: string;
  /** By the names of the throttles. */
  readonly owners: ReadonlyMap<string, LimitOwner>;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
  /** Called for each failed write. Default: none. */
  readonly countFailure?: (() => void) | undefined;
  /** What has worked. Default: not kept. */
  readonly successes?: SavedPart | undefined;
  /** Stores the text before it resolves. Default: writeFileAtomically. */
  readonly write?: typeof writeFileAtomically | undefined;
}

/** Least time between two writes, milliseconds. */
const WRITE_INTERVAL_MS = 10_000;
/** A longer file is not a state file. */
const MAX_BYTES_PER_LIMIT = 256 * 1024;

/** Calls do not wait for a longer write. */
const MAX_WRITE_MS = 1000;
/** Without a slow write, before writes are called quick again. It doubles each time, so that a disk that is slow by turns fills no log. */
const [FIRST_QUICK_MS, LONGEST_QUICK_MS] = [10_000, 3_600_000];
/** No limit allows more. */
const MAX_COUNTED_CALLS = 1e9;
/** For one limit: a sliding window counts in a hundred steps. */
const MAX_COUNT_ENTRIES = 256;

type WriteOccasion = 'lease' | 'interval' | 'end';
type Snapshots = ReadonlyMap<string, LearnedState | undefined>;
type CountedThrottle = Pick<Throttle, 'declaredLimits' | 'pump'>;

export class StateFile {
  readonly #options: StateFileOptions;
  #snapshot: () => Snapshots = () => new Map();
  #cancel: Cancel | undefined;
  #counted: ReadonlyMap<string, CountedThrottle> = new Map();
  readonly #restoredCounts = new Map<string, readonly SavedLimit[]>();
  /** From the last snapshot, or from the file that was read. */
  #learned: Snapshots = new Map();
  #successes: unknown;
  #isLeaseRequested = false;
  /** JSON of what was learned and counted as this process wrote it last. */
  #lastWritten = '';
  #pendingWrite: Promise<void> = Promise.resolve();
  #hasWarned = false;
  /** When the last slow write was seen; undefined while writes are quick. */
  #slowAt: number | undefined;
  #quickMs = FIRST_QUICK_MS;

  constructor(options: StateFileOptions) {
    this.#options = options;
  }

  /** Reads the usable states by throttle, and checks that the file can be written. Never rejects. */
  async restore(): Promise<ReadonlyMap<string, LearnedState>> {
    const states = await this.#read();
    this.#learned = states;
    await this.#checkWritable();
    return states;
  }

  /** Restores the counts of these throttles, and leases the first permits. Resolves when they are stored; never rejects. */
  async startCounting(throttles: ReadonlyMap<string, CountedThrottle>): Promise<void> {
    this.#counted = throttles;
    const now = this.#options.clock.now();
    for (const [name, limits] of this.#restoredCounts) throttles.get(name)?.declaredLimits?.restore(limits, now);
    await this.lease();
  }

  /** Writes the counts and new leases; for limits that were declared since. Never rejects. */
  lease(): Promise<void> {
    return this.#write('lease');
  }

  /** Leases permits soon: one write at a time. */
  readonly requestPermits = (): void => {
    if (this.#isLeaseRequested) return;
    this.#isLeaseRequested = true;
    void this.lease();
  };

  /** Writes the result of `snapshot` and the counts every 10 s from now on, if they have changed. */
  startWriting(snapshot: () => Snapshots): void {
    this.#snapshot = snapshot;
    this.#cancel = this.#options.clock.after(WRITE_INTERVAL_MS, () => {
      this.startWriting(snapshot);
      void this.#write('interval');
    });
  }

  /** Writes for the last time. Never rejects. */
  async stop(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    await this.#write('end');
  }

  async #read(): Promise<Map<string, LearnedState>> {
    const { path, owners } = this.#options;
    try {
      const parsed = parseStateFile(await readBounded(path, MAX_BYTES_PER_LIMIT * owners.size));
      if (parsed.kind === 'read') return this.#readEntries(parsed);
      this.#warn(`${JSON.stringify(path)} ${parsed.reason}: ${ANEW}`);
    } catch (error) {
      // The first start finds no file.
      if (!['ENOENT', 'ENOTDIR'].includes(systemErrorCode(error)))
        this.#warn(`${JSON.stringify(path)} cannot be read (${systemErrorCode(error)}): ${ANEW}`);
    }
    return new Map();
  }

  #readEntries({ limits, counts, successes }: StateFileEntries): Map<string, LearnedState> {
    this.#options.successes?.restore(successes);
    const { path, owners, clock } = this.#options;
    const states = new Map<string, LearnedState>();
    for (const [name, owner] of owners) {
      const learned = limits.has(name) ? parseLearnedState(limits.get(name), owner, clock.wallNow()) : undefined;
      const entry = owners.size === 1 ? '' : `, ${name}:`;
      if (learned?.kind === 'read') states.set(name, learned.state);
      else if (learned !== undefined)
        this.#warn(`${JSON.stringify(path)}${entry} ${learned.reason}: the limit is learned anew`);
      const counted = counts.has(name) ? parseCounts(counts.get(name), owner) : undefined;
      if (counted?.kind === 'read') this.#restoredCounts.set(name, counted.limits);
      else if (counted !== undefined)
        this.#warn(`${JSON.stringify(path)}, counts of ${name}: ${counted.reason}: declared limits count from 0`);
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

  /** Writes are serialized, so that older contents never replace newer ones. */
  #write(occasion: WriteOccasion): Promise<void> {
    this.#pendingWrite = this.#pendingWrite.then(async () => {
      await this.#writeChanged(occasion);
      if (occasion === 'lease') this.#isLeaseRequested = false;
      this.#pump();
    });
    return this.#pendingWrite;
  }

  async #writeChanged(occasion: WriteOccasion): Promise<void> {
    const { owners, clock } = this.#options;
    const counted = [...this.#counted.values()].flatMap(({ declaredLimits }) => declaredLimits ?? []);
    const goOn = (error?: unknown): void => {
      if (error === undefined) this.#warnOfSlowness();
      else this.#warnOnce(error);
      this.#lastWritten = '';
      for (const limits of counted) limits.goOnWithoutStore();
      this.#pump();
    };
    const cancel = counted.length === 0 ? undefined : clock.after(MAX_WRITE_MS, () => goOn());
    try {
      if (occasion !== 'lease') this.#learned = this.#snapshot();
      const limits = new Map<string, object>();
      const counts = new Map<string, object>();
      const compared: unknown[] = [];
      for (const [name, owner] of owners) {
        const learned = this.#learned.get(name);
        if (learned !== undefined) limits.set(name, formatLearnedState(learned, owner));
        const declared = this.#counted.get(name)?.declaredLimits;
        const saved = occasion === 'end' ? declared?.save(clock.now()) : declared?.beginLease(clock.now());
        if (saved !== undefined) counts.set(name, { ...owner, limits: saved });
        compared.push(learned?.governor, saved);
      }
      if (occasion !== 'lease') this.#successes = this.#options.successes?.save(occasion === 'end');
      compared.push(this.#successes);
      if (limits.size + counts.size > 0 || this.#successes !== undefined)
        await this.#replaceChanged(JSON.stringify(compared), formatStateFile(limits, counts, this.#successes));
      if (occasion !== 'end') for (const limits of counted) limits.endLease();
    } catch (error) {
      goOn(error);
    } finally {
      cancel?.();
    }
  }

  /** @param contents of the text, without the instants that change each time @throws when it cannot be written */
  async #replaceChanged(contents: string, text: string): Promise<void> {
    if (contents === this.#lastWritten) return;
    const { path, clock, write = writeFileAtomically } = this.#options;
    const startedAt = clock.now();
    await write(path, text);
    this.#lastWritten = contents;
    this.#hasWarned = false;
    this.#noteSuccess(startedAt);
  }

  #pump(): void {
    for (const throttle of this.#counted.values()) throttle.pump();
  }

  #warnOnce(error: unknown): void {
    this.#options.countFailure?.();
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#warn(
      `no file can be written in ${this.#directory} (${systemErrorCode(error)}): what is learned or counted ends with this process`,
    );
  }

  #warnOfSlowness(): void {
    if (this.#slowAt === undefined)
      this.#warn(
        `a write in ${this.#directory} takes longer than 1 s: calls go on meanwhile, and after a crash declared limits may count too few`,
      );
    this.#slowAt = this.#options.clock.now();
  }

  #noteSuccess(startedAt: number): void {
    // A slow write began before it was seen to be slow.
    if (this.#slowAt === undefined || startedAt - this.#slowAt < this.#quickMs) return;
    this.#slowAt = undefined;
    this.#quickMs = Math.min(LONGEST_QUICK_MS, 2 * this.#quickMs);
    this.#warn(`writes in ${this.#directory} are quick again`);
  }

  get #directory(): string {
    return JSON.stringify(dirname(this.#options.path));
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

export function formatLearnedState(state: LearnedState, owner: LimitOwner): object {
  const { version, wallAt, governor = null, lanes = [] } = state;
  return { version, ...owner, wallAt, governor, lanes: lanes.length === 0 ? undefined : lanes };
}

/** Entries by the names of their throttles. */
export function formatStateFile(
  limits: ReadonlyMap<string, object>,
  counts?: ReadonlyMap<string, object>,
  successes?: unknown,
): string {
  const counted = counts === undefined || counts.size === 0 ? undefined : [...counts];
  return `${JSON.stringify({ version: FILE_VERSION, limits: [...limits], counts: counted, successes })}\n`;
}

/** Checks the file's form; parseLearnedState checks each entry. */
export function parseStateFile(text: string): Parsed<StateFileEntries> {
  const { version, limits, counts = [], successes } = membersOf(parseJson(text));
  if (version === undefined) return unusable(UNKNOWN_FORMAT);
  if (version !== FILE_VERSION) return unusable('is of another version');
  if (!areEntries(limits) || !areEntries(counts)) return unusable(UNKNOWN_FORMAT);
  return { kind: 'read', limits: new Map(limits), counts: new Map(counts), successes };
}

/** @param wallNow epoch milliseconds */
export function parseLearnedState(
  value: unknown,
  owner: LimitOwner,
  wallNow: number,
): Parsed<{ readonly state: LearnedState }> {
  if (typeof value !== 'object' || value === null) return unusable(UNKNOWN_FORMAT);
  const { version, upstream, client, wallAt, governor, lanes } = membersOf(value);
  if (version !== 1) return unusable('is of another version');
  const hasLanes = lanes === undefined || areLearnedLanes(lanes);
  const hasGovernor = typeof governor === 'object' && (governor !== null || lanes !== undefined);
  if (typeof wallAt !== 'number' || !Number.isFinite(wallAt) || !hasGovernor || !hasLanes)
    return unusable(UNKNOWN_FORMAT);
  if (upstream !== owner.upstream) return unusable('was learned from another upstream');
  if (client !== owner.client) return unusable('was learned with another client id');
  if (wallNow - wallAt > MAX_AGE_MS) return unusable('is more than a day old');
  if (wallAt - wallNow > MAX_CLOCK_SKEW_MS) return unusable('is dated in the future');
  return { kind: 'read', state: { version, wallAt, governor, lanes } };
}

function areLearnedLanes(value: unknown): value is readonly LearnedLane[] {
  if (!Array.isArray(value) || value.length > MAX_LANES) return false;
  return value.map(membersOf).every(({ operation, governor }) => {
    return typeof operation === 'string' && typeof governor === 'object' && governor !== null;
  });
}

/** Calls count until their window ends; the age of the file does not matter. */
function parseCounts(value: unknown, owner: LimitOwner): Parsed<{ readonly limits: readonly SavedLimit[] }> {
  const { upstream, client, limits } = membersOf(value);
  if (!Array.isArray(limits) || !limits.every(isSavedLimit)) return unusable(UNKNOWN_FORMAT);
  if (upstream !== owner.upstream) return unusable('were counted at another upstream');
  if (client !== owner.client) return unusable('were counted with another client id');
  return { kind: 'read', limits };
}

function isSavedLimit(value: unknown): value is SavedLimit {
  const { key, counts, leased } = membersOf(value);
  if (typeof key !== 'string' || !Number.isSafeInteger(leased) || Number(leased) < 0) return false;
  if (!Array.isArray(counts) || counts.length > MAX_COUNT_ENTRIES || !counts.every(isCountEntry)) return false;
  return counts.reduce((sum, [, calls]) => sum + calls, 0) >= 0;
}

function isCountEntry(entry: unknown): entry is CountEntry {
  if (!Array.isArray(entry) || entry.length !== 2 || !entry.every(Number.isSafeInteger)) return false;
  return Math.abs(Number(entry[1])) <= MAX_COUNTED_CALLS;
}

function areEntries(entries: unknown): entries is readonly (readonly [string, unknown])[] {
  const isEntry = (entry: unknown): boolean =>
    Array.isArray(entry) && entry.length === 2 && typeof entry[0] === 'string';
  return Array.isArray(entries) && entries.every(isEntry);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** None for a value that is no object. */
function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return (value ?? {}) as Readonly<Record<string, unknown>>;
}

function unusable(reason: string) {
  return { kind: 'unusable', reason } as const;
}
