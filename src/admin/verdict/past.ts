/** Until when it worked, and what has changed here since, in one sentence (pure). */
import { formatInstant } from '../../platform/instant-text.ts';
import { FAULT_CAUSES } from '../../telemetry/events.ts';
import type { Evidence, PastSuccesses } from '../history/past-successes.ts';
import { formatCount } from '../quantity-texts.ts';
import type { CauseName } from './causes.ts';

export interface Known {
  readonly successes?: Pick<PastSuccesses, 'find'> | undefined;
  readonly wallNow: number;
}

/** What shows that a cause was not there. Where requests are delayed or refused here, successes show nothing. */
const EVIDENCE = new Map<CauseName, Evidence>([
  ...FAULT_CAUSES.map((cause) => [cause, 'answered'] as const),
  ['slower_than_clients', 'answered'],
  ['clients_leave_now', 'answered'],
  ['no_token', 'token'],
  ['token_refused', 'authorized'],
  ...(
    [
      'intercepted',
      'foreign_network',
      'foreign_partner',
      'server_error',
      'unavailable',
      'not_found',
      'path_not_found',
      'scope_missing',
      'forbidden',
      'client_error',
    ] as const
  ).map((cause) => [cause, 'succeeded'] as const),
]);
/** The record is sampled, and failures are found after they began: both instants are late by up to this. */
const SAMPLE_MS = 2000;
const HALF_DAY_MS = 12 * 3_600_000;

/** The time of day, and the day of another one. */
export function formatClock(wallAt: number, wallNow: number): string {
  const text = formatInstant(wallAt);
  return `${Math.abs(wallNow - wallAt) < HALF_DAY_MS ? '' : `${text.slice(0, 10)} `}${text.slice(11, 19)} UTC`;
}

/** Undefined while the same works for other calls, and where nothing is known. @param beganWallAt of the failures */
export function describePast(
  { cause, route }: { readonly cause: CauseName; readonly route: string | null },
  beganWallAt: number | undefined,
  { successes, wallNow }: Known,
): string | undefined {
  const evidence = EVIDENCE.get(cause);
  if (evidence === undefined || successes === undefined) return undefined;
  const past = successes.find(evidence, route);
  if (past.count === 0) return `It has not worked since the start at ${formatClock(past.sinceWallAt, wallNow)}.`;
  // Without a token, no request need fail.
  const until = beganWallAt ?? (evidence === 'token' ? Infinity : -Infinity);
  if (past.untilWallAt > until + SAMPLE_MS) return undefined;
  const { count, untilWallAt, change } = past;
  const counted = formatCount(count, evidence === 'token' ? 'token' : 'call');
  const since = change && `${change.words} at ${formatClock(change.wallAt, wallNow)}`;
  return `It worked until ${formatClock(untilWallAt, wallNow)} (${counted}); ${since ?? 'nothing has changed here since'}.`;
}

/** The calls worked before, and nothing has changed here since: a setting that was right is right. */
export function isUnchanged(evidence: Evidence, route: string, { successes }: Pick<Known, 'successes'>): boolean {
  const past = successes?.find(evidence, route);
  return past !== undefined && past.count > 0 && past.change === undefined;
}
