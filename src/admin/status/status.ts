/**
 * Builds the JSON of /status from the states of the parts (pure). No state holds a secret. Instants are ISO 8601, durations seconds;
 * null is unknown or unlimited. What each member means is in config/status-schema.json.
 */
import type { FleetConnectionState } from '../../fleet/redis/connection-health.ts';
import type { DeclaredLimitState } from '../../throttle/declared/declared-limit.ts';
import type { ObservedCalls } from '../../telemetry/events.ts';
import type { FleetQuotaState, LaneState, LearnedLimit, LimitUsage, ThrottleState } from '../../throttle/throttle.ts';
import type { AssumedRefusal } from '../../throttle/pacing/assumed-refusals.ts';
import type { TokenState } from '../../token/token.ts';
import { ALERTS } from '../alerts/alert-table.ts';
import type { ActiveAlert } from '../alerts/active-alerts.ts';
import type { RouteTraffic } from '../samples/traffic.ts';
import type { Verdict } from '../verdict/verdict.ts';
import { describeReloadChanges } from '../../telemetry/event-texts.ts';
import type { ConfigurationState, CountedRefusals, RecentCall, SidecarStates } from './states.ts';
import { describeDegradation } from './readiness.ts';
import { formatInstant } from '../../platform/instant-text.ts';
import { ensureRequestId } from '../../platform/request-id.ts';
import { truncate } from '../../platform/truncate.ts';

export interface StatusInputs extends SidecarStates {
  readonly alerts: readonly ActiveAlert[];
  readonly verdict: Verdict;
}

export type Status = ReturnType<typeof describeStatus>;

const MAX_PATH_LENGTH = 200;

export function describeStatus(states: StatusInputs) {
  const { version, pid = null, uptimeMs, draining, fleet, listener, insufficientScopes = [] } = states;
  const tokens = states.tokens.map(describeToken);
  const throttles = states.throttles.map((throttle) => describeThrottle(throttle, states.refusals));
  return {
    version,
    pid,
    uptimeSeconds: Math.floor(uptimeMs / 1000),
    draining,
    degraded: describeDegradation(states),
    token: first(tokens),
    throttle: first(throttles),
    tokens,
    throttles,
    routes: (states.routes ?? []).map((traffic) => describeRoute(traffic, states.lastFailures)),
    listener: listener === undefined ? null : { ...listener, requestsLimit: finiteOrNull(listener.requestsLimit) },
    insufficientScope: insufficientScopes.map(({ route, count, wallAt, needed }) => ({
      route,
      count,
      lastAt: formatInstant(wallAt),
      needed: needed ?? null,
    })),
    fleet: describeFleet(fleet),
    configuration: describeConfiguration(states.configuration),
    verdict: describeVerdict(states.verdict),
    alerts: states.alerts.map(describeAlert),
    recentCalls: states.recentCalls?.map(describeCall) ?? null,
  };
}

function describeVerdict(verdict: Verdict) {
  const { level, where, code = null, headline, detail, route = null, share, sinceWallAt } = verdict;
  return {
    level,
    where,
    code,
    headline,
    detail,
    route,
    share: share === undefined ? null : roundShare(share),
    since: instantOrNull(sinceWallAt),
    advice: verdict.advice ?? null,
    other: verdict.other ?? null,
  };
}

function describeRoute(traffic: RouteTraffic, lastFailures: readonly RecentCall[] = []) {
  const { route, requests, share, perSecond, ok, clientErrors, p50Ms, p95Ms } = traffic;
  const failure = lastFailures.find(({ record }) => record.route === route);
  return {
    route,
    requests,
    share: roundShare(share),
    perSecond: roundShare(perSecond),
    success: requests === 0 ? null : roundShare(Math.min(1, ok / requests)),
    clientErrors,
    upstreamP50Seconds: secondsOrNull(p50Ms),
    upstreamP95Seconds: secondsOrNull(p95Ms),
    lastFailure: failure === undefined ? null : describeCall(failure),
  };
}

function describeAlert({ name, subject, value }: ActiveAlert) {
  const { severity, forMs } = ALERTS[name];
  return { name, severity, forSeconds: forMs / 1000, subject: subject ?? null, value: roundShare(value) };
}

function describeCall({ wallAt, record }: RecentCall) {
  const { route, method, path, code, source, attempts, queuedMs, durationMs } = record;
  return {
    at: formatInstant(wallAt),
    route,
    method,
    path: truncate(path, MAX_PATH_LENGTH),
    status: code,
    source,
    attempts,
    waitSeconds: Math.round(queuedMs) / 1000,
    durationSeconds: Math.round(durationMs) / 1000,
    reason: describeReason(record),
    outcome: record.isOutcomeUnknown === true ? 'unknown' : null,
    requestId: ensureRequestId(record),
    caller: record.caller ?? null,
    upstreamRequestId: record.upstreamRequestId ?? null,
  };
}

/** The code of a local reply, or what ended the response early. The text of a fault may name a path on disk or a query: it is for the log. */
function describeReason({ localReply, cutBy, code, source }: RecentCall['record']): string | null {
  if (localReply !== undefined) return localReply;
  if (cutBy !== undefined) return `cut off by the ${cutBy}`;
  return code === 499 && source === 'sidecar' ? 'the client left' : null;
}

function first<T>(parts: readonly T[]): T {
  const [part] = parts;
  if (part === undefined) throw new Error('there is no sidecar without a credential and a route');
  return part;
}

function describeToken(token: TokenState) {
  const { credential, status, serial, lastFailure: failure, credentialFault: fault } = token;
  return {
    credential,
    file: token.file ?? null,
    status,
    serial,
    scope: token.scope ?? null,
    expiresAt: instantOrNull(token.expiresWallAt),
    validForSeconds: secondsOrNull(token.validForMs),
    usesPrevious: token.usesPrevious,
    missingScopes: token.missingScopes,
    credentialFault: fault ? { detail: fault.detail, since: formatInstant(fault.wallAt) } : null,
    circuit: token.circuit,
    consecutiveFailures: token.consecutiveFailures,
    lastFailure: failure
      ? { outcome: failure.outcome, detail: failure.detail, at: formatInstant(failure.wallAt) }
      : null,
    nextRequestInSeconds: secondsOrNull(token.nextRequestInMs),
  };
}

function describeThrottle(throttle: ThrottleState, refusals: readonly CountedRefusals[] = []) {
  const { route, mode, rate, queued, queuedByPriority, inFlight, streams } = throttle;
  return {
    route,
    mode,
    rate: finiteOrNull(rate),
    unpaced: rate === Infinity,
    pausedSeconds: secondsOrNull(throttle.pausedMs),
    heldBy: throttle.heldBy ?? null,
    disbelievedFields: throttle.disbelievedFields ?? [],
    queued,
    queueLimit: throttle.queueMax,
    queuedByPriority,
    readingBodies: throttle.readingBodies,
    stalledBodies: throttle.stalledBodies,
    stalledResponses: throttle.stalledResponses,
    stalledInFlight: throttle.stalledInFlight,
    inFlight,
    inFlightLimit: finiteOrNull(throttle.inFlightLimit),
    streams,
    learned: describeLearned(throttle.learned),
    usage: describeUsage(throttle.usage),
    fleet: describeQuota(throttle.fleet),
    limits: (throttle.limits ?? []).map(describeDeclared),
    lanes: (throttle.lanes ?? []).map(describeLane),
    refusedOperation: throttle.refusedOperation ?? null,
    assumed: (throttle.assumed ?? []).map(describeAssumed),
    observed: throttle.observed === undefined ? null : describeObserved(throttle.observed),
    refusals: refusals.filter((refused) => refused.route === route).map(describeRefusals),
    recentSignals: throttle.recentSignals.map(({ wallAt, status, pauseMs, stated, fields }) => ({
      at: formatInstant(wallAt),
      status,
      pauseSeconds: secondsOrNull(pauseMs),
      stated,
      fields,
    })),
  };
}

function describeRefusals({ status, count, firstWallAt, lastWallAt }: CountedRefusals) {
  return { status, count, firstAt: formatInstant(firstWallAt), lastAt: formatInstant(lastWallAt) };
}

function describeDeclared({ usedUpAt, resetsAt, ...figures }: DeclaredLimitState) {
  return { ...figures, usedUpAt: instantOrNull(usedUpAt), resetsAt: instantOrNull(resetsAt) };
}

function describeLane({ operation, learned, usage, pausedMs, queued, refused, isConfirmed }: LaneState) {
  return {
    operations: [operation],
    learned: describeLearned(learned),
    usage: describeUsage(usage),
    pausedSeconds: secondsOrNull(pausedMs),
    queued,
    refused,
    scope: isConfirmed ? 'shown' : 'tested',
  };
}

function describeObserved({ since, wouldWaitMs, ...figures }: ObservedCalls) {
  return { ...figures, since: formatInstant(since), wouldWaitSeconds: wouldWaitMs / 1000 };
}

function describeAssumed({ since, ...assumed }: AssumedRefusal) {
  return { ...assumed, since: formatInstant(since) };
}

function roundShare(share: number): number {
  return Math.round(share * 1000) / 1000;
}

function describeLearned(learned: LearnedLimit | undefined) {
  if (learned === undefined) return null;
  return {
    rate: finiteOrNull(learned.rate),
    limit: learned.limit ?? null,
    windowSeconds: secondsOrNull(learned.windowMs),
    kind: learned.kind,
    confidence: learned.confidence,
    since: formatInstant(learned.since),
  };
}

function describeUsage(usage: LimitUsage | undefined) {
  if (usage === undefined) return null;
  const { used, limit, windowMs, opensInMs } = usage;
  const opensInSeconds = secondsOrNull(opensInMs);
  return { used: Math.round(used * 10) / 10, limit, windowSeconds: secondsOrNull(windowMs), opensInSeconds };
}

function describeQuota(fleet: FleetQuotaState | undefined) {
  if (fleet === undefined) return null;
  const { state, isLeader, replicas, rate, leased } = fleet;
  return { state, leader: isLeader, replicas, rate: finiteOrNull(rate), leased };
}

function describeFleet(fleet: FleetConnectionState | undefined) {
  if (fleet === undefined) return null;
  const { state, connected, fault, sinceWallAt } = fleet;
  return { state, connected, fault: fault ?? null, since: formatInstant(sinceWallAt) };
}

export function describeConfiguration(state: ConfigurationState | undefined) {
  if (state === undefined) return null;
  const { loadedWallAt, isReloadable: reloadable, lastReload: last } = state;
  return {
    loadedAt: formatInstant(loadedWallAt),
    reloadable,
    lastReload: last
      ? { at: formatInstant(last.wallAt), outcome: last.outcome, detail: describeReloadChanges(last.lines) }
      : null,
  };
}

/** Rounded to the millisecond. */
function secondsOrNull(ms: number | undefined): number | null {
  return ms === undefined ? null : finiteOrNull(Math.round(ms) / 1000);
}

function instantOrNull(wallAt = Infinity): string | null {
  return Number.isFinite(wallAt) ? formatInstant(wallAt) : null;
}

/** JSON has no Infinity. */
function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
