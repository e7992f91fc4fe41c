/**
 * The JSON of /status and of the probes, as pure functions of the states of the parts. Instants are ISO 8601, durations
 * seconds, what is unknown or unlimited null. No state holds a secret, so nothing here can show one.
 */
import type { ThrottleState } from '../throttle/throttle.ts';
import type { TokenState } from '../token/token.ts';

/** Everything that the admin port tells about. */
export interface AdminStates {
  readonly version: string;
  readonly uptimeMs: number;
  readonly draining: boolean;
  readonly token: TokenState;
  readonly throttle: ThrottleState;
}

export interface Status {
  readonly version: string;
  readonly uptimeSeconds: number;
  readonly draining: boolean;
  readonly token: {
    readonly credential: string;
    readonly status: TokenState['status'];
    /** Rises with every token obtained; 0 before the first. */
    readonly serial: number;
    readonly scope: string | null;
    readonly expiresAt: string | null;
    readonly validForSeconds: number | null;
    readonly consecutiveFailures: number;
    readonly lastFailure: { readonly outcome: string; readonly detail: string; readonly at: string } | null;
    readonly nextRequestInSeconds: number | null;
  };
  readonly throttle: {
    readonly route: string;
    readonly mode: ThrottleState['mode'];
    /** Permits per second; null while unpaced. */
    readonly rate: number | null;
    readonly unpaced: boolean;
    readonly pausedSeconds: number | null;
    readonly queued: number;
    readonly inFlight: number;
    readonly inFlightLimit: number | null;
    readonly streams: number;
    /** Newest first. */
    readonly recentSignals: readonly {
      readonly at: string;
      readonly status: number;
      readonly pauseSeconds: number | null;
      /** True when the upstream stated the wait itself. */
      readonly stated: boolean;
      readonly fields: Readonly<Record<string, string>>;
    }[];
  };
}

export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

/** The body of /status. */
export function describeStatus({ version, uptimeMs, draining, token, throttle }: AdminStates): Status {
  return {
    version,
    uptimeSeconds: Math.floor(uptimeMs / 1000),
    draining,
    token: describeToken(token),
    throttle: describeThrottle(throttle),
  };
}

/**
 * The body of /readyz: ready with a token that has life left and while not draining. Failures of the token endpoint are
 * told, and do not matter as long as the held token lives.
 */
export function describeReadiness({ draining, token }: Pick<AdminStates, 'draining' | 'token'>): Readiness {
  const validForMs = token.status === 'none' ? 0 : (token.validForMs ?? 0);
  const reasons = [
    ...(draining ? ['draining'] : []),
    validForMs > 0 ? `token valid for ${Math.floor(validForMs / 1000)} s` : 'no usable token',
    ...(token.status === 'suspect' ? ['the upstream refused the token; a new one is asked for'] : []),
    ...describeFailures(token),
  ];
  return { ready: !draining && validForMs > 0, reasons };
}

/** The words of a failing token endpoint, fit for a probe that anyone may ask: no detail, which may name hosts. */
function describeFailures({ consecutiveFailures, lastFailure }: TokenState): string[] {
  if (consecutiveFailures === 0) return [];
  const times = consecutiveFailures === 1 ? 'once' : `${consecutiveFailures} times in a row`;
  return [`token endpoint failed ${times} (${lastFailure?.outcome ?? 'unknown'})`];
}

function describeToken(token: TokenState): Status['token'] {
  const { credential, status, serial, scope, consecutiveFailures, lastFailure } = token;
  return {
    credential,
    status,
    serial,
    scope: scope ?? null,
    expiresAt: token.expiresWallAt === undefined ? null : isoTime(token.expiresWallAt),
    validForSeconds: secondsOrNull(token.validForMs),
    consecutiveFailures,
    lastFailure:
      lastFailure === undefined
        ? null
        : { outcome: lastFailure.outcome, detail: lastFailure.detail, at: isoTime(lastFailure.wallAt) },
    nextRequestInSeconds: secondsOrNull(token.nextRequestInMs),
  };
}

function describeThrottle(throttle: ThrottleState): Status['throttle'] {
  const { route, mode, rate, queued, inFlight, streams } = throttle;
  return {
    route,
    mode,
    rate: finiteOrNull(rate),
    unpaced: rate === Infinity,
    pausedSeconds: secondsOrNull(throttle.pausedMs),
    queued,
    inFlight,
    inFlightLimit: finiteOrNull(throttle.inFlightLimit),
    streams,
    recentSignals: throttle.recentSignals.map(({ wallAt, status, pauseMs, stated, fields }) => ({
      at: isoTime(wallAt),
      status,
      pauseSeconds: secondsOrNull(pauseMs),
      stated,
      fields,
    })),
  };
}

/** To the millisecond. */
function secondsOrNull(ms: number | undefined): number | null {
  return ms === undefined ? null : finiteOrNull(Math.round(ms) / 1000);
}

/** JSON has no Infinity. */
function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

function isoTime(wallAt: number): string {
  return new Date(wallAt).toISOString();
}
