/**
 * The text in which what `auto` has learned outlasts the process (pure). It says for whom it was learned and when, so that nobody
 * starts from another's limit or from yesterday's. The file around it is state-file.ts's, what is learned the governor's.
 */
import type { LearnedState } from '../throttle.ts';

/** Whose limit it is; compared as a whole. */
export interface LimitOwner {
  /** Origin of the upstream. */
  readonly upstream: string;
  /** Stands for the client id, and does not tell it. */
  readonly client: string;
}

export type LearnedStateParseResult =
  | { readonly kind: 'read'; readonly state: LearnedState }
  /** Why it is of no use, in words that follow the file's name. */
  | { readonly kind: 'useless'; readonly reason: string };

/** Older, it says little: limits follow contracts and the seasons of a partner's operators. */
const MAX_AGE_MS = 24 * 3_600_000;
/** Clocks of two machines differ. */
const MAX_CLOCK_SKEW_MS = 60_000;

/** Of the file; one that holds a single limit was the first. */
const FILE_VERSION = 2;

/** What a file says: a text for each limit, by the name of its throttle. */
export type StateFileParseResult =
  | { readonly kind: 'read'; readonly limits: ReadonlyMap<string, unknown> }
  | { readonly kind: 'useless'; readonly reason: string };

/** One limit as it stands in the file. */
export function formatLearnedState({ version, wallAt, governor }: LearnedState, owner: LimitOwner): object {
  return { version, ...owner, wallAt, governor };
}

/** One JSON text with all of them by the names of their throttles, ended by a line feed. */
export function formatStateFile(limits: ReadonlyMap<string, object>): string {
  return `${JSON.stringify({ version: FILE_VERSION, limits: [...limits] })}\n`;
}

/** Takes the file apart; what each limit says is parseLearnedState's to judge. */
export function parseStateFile(text: string): StateFileParseResult {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null || !('version' in value)) return unusable(UNKNOWN_FORMAT);
  if (value.version !== FILE_VERSION) return unusable('is of another version');
  const entries = 'limits' in value && Array.isArray(value.limits) ? (value.limits as unknown[]) : undefined;
  if (entries?.every(isLimitEntry) !== true) return unusable(UNKNOWN_FORMAT);
  return { kind: 'read', limits: new Map(entries) };
}

function isLimitEntry(entry: unknown): entry is readonly [string, unknown] {
  return Array.isArray(entry) && entry.length === 2 && typeof entry[0] === 'string';
}

const UNKNOWN_FORMAT = 'is not what a sidecar writes';

/**
 * @param value what the file holds of one limit
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unusable(reason: string): { kind: 'useless'; reason: string } {
  return { kind: 'useless', reason };
}
