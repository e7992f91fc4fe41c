/**
 * What is kept of the past in words: notable events, the last calls, the newest fault of each route and cause, and the routes that
 * lack a scope. Bounded by the routes and closed sets. The ring of samples has the numbers.
 */
import type { Clock } from '../../platform/clock.ts';
import type { Redact } from '../../platform/secret-redaction.ts';
import { ensureRequestId } from '../../platform/request-id.ts';
import type { SidecarEvent } from '../../telemetry/events.ts';
import type { RequestRecord } from '../../telemetry/request-record.ts';
import type { ClockSkew, CountedRefusals, InsufficientScopes, LastFault, RecentCall } from '../status/states.ts';
import { EventLog } from './event-log.ts';

export type Activity = ReturnType<typeof createActivity>;

const MAX_CALLS = 50;
/** Half of what a signed assertion is valid for. */
const MAX_SKEW_MS = 30_000;

/** @param keepsCalls default true @param mask for the texts in calls, when these are read: most are never. Default: none */
export function createActivity(clock: Pick<Clock, 'wallNow'>, keepsCalls = true, mask: Redact = (text) => text) {
  const eventLog = new EventLog(() => clock.wallNow());
  // A ring, whose oldest call is at `nextCall` once it is full.
  const calls: RecentCall[] = [];
  let nextCall = 0;
  const insufficientScopes = new Map<string, InsufficientScopes>();
  const lastFaults = new Map<string, LastFault>();
  const refusals = new Map<string, CountedRefusals>();
  const lastFailures = new Map<string, RecentCall>();
  const clockSkews = new Map<string, number>();
  return {
    eventLog,
    /** Newest first; undefined when calls are not kept. */
    listRecentCalls: () => {
      const newestFirst = [...calls.slice(nextCall), ...calls.slice(0, nextCall)].reverse();
      return keepsCalls ? newestFirst.map((call) => maskCall(call, mask)) : undefined;
    },
    /** The newest call of each route with a status of 400 or above; empty when calls are not kept. */
    listLastFailures: () => Array.from(lastFailures.values(), (call) => maskCall(call, mask)),
    listInsufficientScopes: () => [...insufficientScopes.values()],
    listLastFaults: () => [...lastFaults.values()],
    listRefusals: () => [...refusals.values()],
    listClockSkews: () => Array.from(clockSkews, ([from, skewMs]) => ({ from, skewMs })),
    observe: (event: SidecarEvent): void => {
      if (event.kind === 'insufficient-scope') countScopes(insufficientScopes, event, clock.wallNow());
      if (event.kind === 'rate-limited') countRefusal(refusals, event, clock.wallNow());
      if (event.kind === 'clock-compared') noteSkew(clockSkews, event);
      const fault = readFault(event, clock.wallNow());
      if (fault !== undefined) keepFault(lastFaults, fault);
      eventLog.observe(event);
    },
    recordRequest: (record: RequestRecord): void => {
      if (keepsCalls) {
        calls[nextCall] = { wallAt: clock.wallNow(), record };
        nextCall = (nextCall + 1) % MAX_CALLS;
        if (record.code >= 400) lastFailures.set(record.route, { wallAt: clock.wallNow(), record });
      }
      if (record.localReply !== undefined) eventLog.addLocalReply(record.localReply);
    },
  };
}

/** Undefined also for what the sidecar ended itself, which has no cause. */
function readFault(event: SidecarEvent, wallAt: number): LastFault | undefined {
  if (event.kind === 'unauthorized') return { route: event.route, cause: 'unauthorized', detail: event.detail, wallAt };
  if (event.kind !== 'attempt-failed' && event.kind !== 'foreign-response') return undefined;
  const { route, cause, detail } = event;
  const advice = event.kind === 'attempt-failed' ? event.advice : undefined;
  return cause && { route, cause, detail, advice, wallAt };
}

/** A 401 that goes to its client at once is quoted without its body: the same words with more of them stay. */
function keepFault(lastFaults: Map<string, LastFault>, fault: LastFault): void {
  const key = `${fault.route} ${fault.cause}`;
  const last = lastFaults.get(key);
  const isShorter = fault.cause === 'unauthorized' && last?.detail.startsWith(fault.detail.slice(0, -1)) === true;
  lastFaults.set(key, isShorter ? { ...last, wallAt: fault.wallAt } : fault);
}

function noteSkew(skews: Map<string, number>, { from, skewMs }: ClockSkew): void {
  if (Math.abs(skewMs) > MAX_SKEW_MS) skews.set(from, skewMs);
  else skews.delete(from);
}

function countScopes(
  scopes: Map<string, InsufficientScopes>,
  { route, needed }: Pick<InsufficientScopes, 'route' | 'needed'>,
  wallAt: number,
): void {
  scopes.set(route, { route, count: (scopes.get(route)?.count ?? 0) + 1, wallAt, needed });
}

/** By route and status, of which an upstream has few that say "too fast". */
function countRefusal(
  refusals: Map<string, CountedRefusals>,
  { route, status }: Pick<CountedRefusals, 'route' | 'status'>,
  wallAt: number,
): void {
  const key = `${route} ${status}`;
  const { count, firstWallAt } = refusals.get(key) ?? { count: 0, firstWallAt: wallAt };
  refusals.set(key, { route, status, count: count + 1, firstWallAt, lastWallAt: wallAt });
}

function maskCall({ wallAt, record }: RecentCall, mask: Redact): RecentCall {
  const { method, path, caller } = record;
  const requestId = mask(ensureRequestId(record));
  return {
    wallAt,
    record: { ...record, requestId, method: mask(method), path: mask(path), caller: caller && mask(caller) },
  };
}
