/**
 * The text of the state file (pure): what `auto` learned for each throttle, for whom and when, so that no process begins with the
 * limit of another client or of yesterday. state-file.ts reads and writes the file; limit-snapshot.ts owns what is learned.
 */
import type { LearnedState } from '../throttle.ts';

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

/** One entry of the file. */
export function formatLearnedState({ version, wallAt, governor }: LearnedState, owner: LimitOwner): object {
  return { version, ...owner, wallAt, governor };
}

/**
 * The JSON text of the file, with a final line feed.
 * @param limits entries by the names of their throttles
 */
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

/**
 * Checks one entry of the file: its form, owner and age.
 * @param wallNow epoch milliseconds
 */
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
