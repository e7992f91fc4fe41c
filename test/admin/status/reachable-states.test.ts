/**
 * Every state that a sidecar can reach is shown: after any history of upstream, token endpoint, clock, operator and fleet, /status is valid
 * against its schema, and page, event stream, metrics and the `status` command hold no number and no instant that is none.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import { roundsOf } from '../../support/rounds.ts';
import type { PlayedReply, PlayedResponse, PlayedSetup, PlayedSidecar } from './played-sidecar.ts';
import { createServedSidecar } from './served-sidecar.ts';
import { findStatusFaults } from './status-schema.ts';

/** A number, an instant or a member that is none, or a figure that no person reads. */
const NONSENSE = /\bNaN\b|Infinity|Invalid|\bundefined\b|\[object|\d{17}|\de[+-]\d/;
const RUNS = roundsOf({ check: 20, soak: 200 });
const CLOCK_START = Date.UTC(2026, 10, 1);

const served = createServedSidecar();
let played: PlayedSidecar;

/** Everything that is wrong with what the sidecar shows now. */
async function findFaults(): Promise<string[]> {
  const document = JSON.parse(
    await served.get('/status').then((text) => (text.startsWith('{') ? text : JSON.stringify(text))),
  ) as unknown;
  const [page, metrics] = [await served.get('/'), await served.get('/metrics')];
  const summary = await served.get('/status.txt');
  const unknownMetrics = /^bearer_sidecar_.* (?!\+Inf$)[^\d-].*$/m.exec(metrics)?.[0];
  const limits = await served.get('/limits.txt');
  const texts = { page, summary, limits, events: await served.readEvents() };
  return [
    ...(typeof document === 'string' ? [document] : findStatusFaults(document).map((fault) => `/status: ${fault}`)),
    ...Object.entries(texts).flatMap(([name, text]) => {
      const at = text.search(NONSENSE);
      return at < 0 ? [] : [`${name}: ${text.slice(Math.max(0, at - 60), at + 40)}`];
    }),
    ...(unknownMetrics === undefined ? [] : [`metrics: ${unknownMetrics}`]),
    ...[...Object.values(texts), metrics].filter((text) => /^HTTP \d/.test(text)),
    ...played.faults,
    ...played.events.flatMap((event) => findUnknownNumbers(event, event.kind)),
  ];
}

/** JSON, and so the log, has neither NaN nor Infinity. */
function findUnknownNumbers(value: unknown, path: string): string[] {
  if (typeof value === 'number') return Number.isFinite(value) ? [] : [`event ${path} is ${String(value)}`];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => findUnknownNumbers(member, `${path}.${name}`));
}

type Step =
  | { readonly do: 'call'; readonly route: number; readonly times: number; readonly response: PlayedResponse }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'step-clock'; readonly ms: number }
  | { readonly do: 'token'; readonly credential: number; readonly result: TokenRequestResult }
  | { readonly do: 'reconfigure'; readonly route: number; readonly rate: number | 'auto' }
  | { readonly do: 'reload'; readonly outcome: 'ok' | 'refused' | 'invalid' }
  | { readonly do: 'join'; readonly reply: PlayedReply }
  | { readonly do: 'part'; readonly isDegraded: boolean }
  | { readonly do: 'drain' }
  | { readonly do: 'look' };

async function play(step: Step): Promise<string[]> {
  switch (step.do) {
    case 'call':
      for (let count = 0; count < step.times; count++) played.call(step.route, step.response);
      await played.clock.advance(50);
      return [];
    case 'wait':
      await played.clock.advance(step.ms);
      return [];
    case 'step-clock':
      played.clock.stepWall(step.ms);
      return [];
    case 'token':
      played.setTokenResult(step.credential, step.result);
      await played.clock.advance(1);
      return [];
    case 'reconfigure':
      played.reconfigure(step.route, step.rate);
      return [];
    case 'reload':
      played.reload(step.outcome);
      return [];
    case 'join':
      played.connectFleet(step.reply);
      await played.clock.advance(25);
      return [];
    case 'part':
      played.disconnectFleet(step.isDegraded);
      return [];
    case 'drain':
      played.drain();
      return [];
    case 'look':
      return findFaults();
  }
}

const ALONE: PlayedSetup = {
  ...{ wallStartMs: CLOCK_START, routes: ['auto'], credentials: 1, isFleet: false, maxPauseMs: 300_000 },
  snapshot: undefined,
};

/** Plays the steps and looks at the end; what was wrong at any look. */
async function faultsOf(setup: PlayedSetup, steps: readonly Step[]): Promise<string[]> {
  played = served.play(setup);
  const faults: string[] = [];
  for (const step of [...steps, { do: 'look' } as const]) faults.push(...(await play(step)));
  return [...new Set(faults)];
}

const refusal = (status: number, headers: Readonly<Record<string, string>> = {}): Step => ({
  ...{ do: 'call', route: 0, times: 1 },
  response: { status, headers },
});
const OK_TOKEN: TokenRequestResult = {
  kind: 'ok',
  value: 'the-token-of-the-tests',
  lifetimeMs: 3_600_000,
  scope: undefined,
};

describe('the state after the very first call of a process', () => {
  it.each<[string, Step]>([
    ['429 with a wait', refusal(429, { 'retry-after': '20' })],
    ['429 without a hint', refusal(429)],
    ['429 with a date in the past', refusal(429, { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' })],
    ['429 with a wait of thousands of years', refusal(429, { 'retry-after': '99999999999999' })],
    ['429 with nothing remaining', refusal(429, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '20' })],
    ['403 with a wait', refusal(403, { 'retry-after': '20' })],
    ['503 with a wait', refusal(503, { 'retry-after': '20' })],
    [
      '200 with nothing remaining',
      refusal(200, { ratelimit: '"burst";r=0;t=30', 'ratelimit-policy': '"burst";q=9;w=60' }),
    ],
    ['401', refusal(401)],
    ['reset', { do: 'call', route: 0, times: 1, response: { status: 'reset' } }],
  ])('%s is shown', async (_, first) => {
    expect(await faultsOf(ALONE, [{ do: 'token', credential: 0, result: OK_TOKEN }, first])).toEqual([]);
  });

  it('none shows no latency', async () => {
    await faultsOf(ALONE, [{ do: 'wait', ms: 2000 }]);
    expect(await served.get('/')).toContain('<p class="say" id="say-latency">No requests so far.</p>');
  });

  it('none is shown, with a token and without', async () => {
    expect(await faultsOf(ALONE, [])).toEqual([]);
    expect(await faultsOf(ALONE, [{ do: 'token', credential: 0, result: OK_TOKEN }])).toEqual([]);
  });
});

const waits = fc.constantFrom(
  ...['0', '1', '20', '3600', '1.5', '99999999999', '-1', 'soon', 'Infinity', 'NaN', '1e400'],
);
const headers = fc.record(
  {
    'retry-after': fc.oneof(waits, fc.constantFrom('Sun, 06 Nov 1994 08:49:37 GMT', 'Sun, 01 Nov 2026 00:00:20 GMT')),
    'retry-after-ms': fc.constantFrom('0', '250', '1e9'),
    ratelimit: fc.constantFrom('"burst";r=0;t=30', 'limit=10, remaining=0, reset=5', '"p";r=3', '"p";r=-1;t=-1', 'x'),
    'ratelimit-policy': fc.constantFrom('"burst";q=100;w=60', '"p";q=0;w=0', '100;w=60, 1000;w=3600', '"p";q=5'),
    'x-ratelimit-limit': fc.constantFrom('0', '1', '100', '100, 100;w=60'),
    'x-ratelimit-remaining': fc.constantFrom('0', '1', '50', '-3'),
    'x-ratelimit-reset': fc.constantFrom('0', '20', '1793491230', '1793491230000', '999999999999', 'Infinity'),
    'x-ratelimit-reset-requests': fc.constantFrom('6m0s', '120ms'),
  },
  { requiredKeys: [] },
);
const responses: fc.Arbitrary<PlayedResponse> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ status: fc.constantFrom(200, 429, 429, 503, 403), headers }) },
  {
    weight: 3,
    arbitrary: fc.record({ status: fc.constantFrom(200, 204, 429, 503, 401, 500), headers: fc.constant({}) }),
  },
  { weight: 1, arbitrary: fc.constant({ status: 'reset' as const }) },
);
const tokenResults: fc.Arbitrary<TokenRequestResult> = fc.oneof(
  fc.record({
    ...{ kind: fc.constant('ok' as const), value: fc.constantFrom('token-one', 'token-two') },
    lifetimeMs: fc.constantFrom(1000, 3_600_000, 365 * 86_400_000),
    scope: fc.constantFrom(undefined, 'quotes.write'),
  }),
  fc.constant({ kind: 'rejected', error: 'invalid_client', detail: 'the server refused' } as const),
  fc.constant({ kind: 'unavailable', retryAfterMs: 1e12, detail: 'the server is away' } as const),
  fc.constant({ kind: 'malformed', detail: 'no access_token' } as const),
);
const learned = fc.record({
  kind: fc.constantFrom('window', 'unknown'),
  confidence: fc.constantFrom('none', 'high'),
  rate: fc.constantFrom(5, null, 'x'),
  since: fc.constantFrom(60_000, 0, null, 'x', 1e300),
  limit: fc.constantFrom(100, null, 'x', undefined),
  windowMs: fc.constantFrom(10_000, null, 'x', undefined),
});
const snapshot = { kind: 'window', windowMs: 10_000, limit: 100, rate: 10, margin: 1, used: 3 };
const replies: fc.Arbitrary<PlayedReply> = fc.record({
  leads: fc.boolean(),
  epoch: fc.integer({ min: 0, max: 3 }),
  isPaused: fc.boolean(),
  pausedForMs: fc.constantFrom(-1000, 0, 20_000, 86_400_000),
  rate: fc.constantFrom('', '0', '5', '0.01'),
  replicas: fc.integer({ min: 1, max: 16 }),
  permitsInMs: fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 4 }),
  model: fc.oneof(
    fc.constantFrom('', '{', 'null', JSON.stringify({ snapshot })),
    learned.map((found) => JSON.stringify({ snapshot, learned: found })),
  ),
});
const rates = fc.constantFrom<(number | 'auto')[]>('auto', 'auto', 'auto', 0.01, 50);
const routeIndex = fc.integer({ min: 0, max: 3 });
const YEAR_MS = 365 * 86_400_000;
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      route: routeIndex,
      times: fc.integer({ min: 1, max: 12 }),
      response: responses,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 300, 2000, 20_000, 61_000) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('step-clock' as const),
      ms: fc.constantFrom(1000, -1000, 3_600_000, -3_600_000, 30 * YEAR_MS, -70 * YEAR_MS),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('token' as const), credential: routeIndex, result: tokenResults }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reconfigure' as const), route: routeIndex, rate: rates }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('reload' as const),
      outcome: fc.constantFrom('ok' as const, 'refused' as const, 'invalid' as const),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('join' as const), reply: replies }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('part' as const), isDegraded: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ do: 'drain' as const }) },
  { weight: 3, arbitrary: fc.constant({ do: 'look' as const }) },
);
const declared = { timeZone: 'UTC', countsRefused: true, spread: 'none', reserve: 0 } as const;
const DECLARED: DeclaredLimit[] = [
  { ...declared, name: 'burst', calls: 3, per: '10s', window: 'sliding', countsRefused: false },
  { ...declared, name: 'own', calls: 9, per: '1m', window: 'sliding', match: { path: '/*' }, each: true },
  { ...declared, name: 'hour', calls: 10, per: '1h', window: 'sliding', reserve: 4 },
  { ...declared, name: 'day', calls: 20, per: '1d', window: 'calendar', timeZone: 'Europe/Berlin', spread: 'even' },
  { ...declared, name: 'month', calls: 1_000_000_000, per: '1mo', window: 'calendar' },
];
const setups: fc.Arbitrary<PlayedSetup> = fc.record({
  wallStartMs: fc.constantFrom(CLOCK_START, 0),
  routes: fc.array(rates, { minLength: 1, maxLength: 4 }),
  credentials: fc.integer({ min: 1, max: 2 }),
  isFleet: fc.boolean(),
  maxPauseMs: fc.constantFrom(1000, 300_000),
  limits: fc.subarray(DECLARED),
  snapshot: fc.constantFrom(
    undefined,
    undefined,
    snapshot,
    { ...snapshot, kind: 'concurrency', windowMs: 0, limit: 4 },
    {},
  ),
});

describe('the states of generated histories', () => {
  it(
    'are all shown',
    async () => {
      await fc.assert(
        fc.asyncProperty(setups, fc.array(steps, { maxLength: 14 }), async (setup, history) => {
          expect(await faultsOf(setup, history)).toEqual([]);
        }),
        { numRuns: RUNS },
      );
    },
    RUNS * 3000,
  );
});
