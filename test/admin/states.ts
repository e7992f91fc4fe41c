/** States of the parts, as inputs of the admin port. */
import type { ThrottleState } from '../../src/throttle/throttle.ts';
import type { Verdict } from '../../src/admin/verdict/verdict.ts';
import type { TokenState } from '../../src/token/token.ts';

/** Never obtained, nothing failed yet. */
export const noToken: TokenState = {
  credential: 'default',
  status: 'none',
  serial: 0,
  scope: undefined,
  expiresWallAt: undefined,
  validForMs: undefined,
  usesPrevious: false,
  missingScopes: [],
  consecutiveFailures: 0,
  lastFailure: undefined,
  circuit: 'closed',
  credentialFault: undefined,
  nextRequestInMs: 0,
  hasHadToken: false,
};

export const validToken: TokenState = {
  ...noToken,
  status: 'valid',
  serial: 3,
  scope: 'quotes.write policies.write',
  expiresWallAt: Date.UTC(2026, 10, 1, 1),
  validForMs: 1_234_567,
  nextRequestInMs: 900_000,
  hasHadToken: true,
};

/** Two failures in a row of the token endpoint. */
export const failing: Pick<TokenState, 'consecutiveFailures' | 'lastFailure'> = {
  consecutiveFailures: 2,
  lastFailure: { outcome: 'unavailable', detail: 'connect to auth.internal refused', wallAt: Date.UTC(2026, 10, 1) },
};

export const unpaced: ThrottleState = {
  route: 'default',
  mode: 'auto',
  rate: Infinity,
  pausedMs: 0,
  queued: 0,
  queueMax: 1000,
  queuedByPriority: { high: 0, normal: 0, low: 0 },
  readingBodies: 0,
  stalledBodies: 0,
  stalledResponses: 0,
  stalledInFlight: 0,
  inFlight: 1,
  streams: 0,
  inFlightLimit: 4,
  recentSignals: [],
  learned: { rate: Infinity, kind: 'unknown', confidence: 'none', since: Date.UTC(2026, 10, 1) },
};

/** After a 429 with a stated wait. */
export const limited: ThrottleState = {
  ...unpaced,
  rate: 9.5,
  pausedMs: 1500,
  learned: {
    rate: 9.5,
    limit: 100,
    windowMs: 10_000,
    kind: 'window',
    confidence: 'high',
    since: Date.UTC(2026, 10, 1),
  },
  queued: 12,
  queuedByPriority: { high: 1, normal: 2, low: 9 },
  recentSignals: [
    {
      wallAt: Date.UTC(2026, 10, 1),
      status: 429,
      pauseMs: 2000,
      stated: true,
      fields: { 'retry-after': 2, 'x-ratelimit-remaining': { unparsed: 8 } },
    },
  ],
};

export const healthy: Verdict = { level: 'good', where: 'none', headline: 'Healthy', detail: '3 requests.' };
