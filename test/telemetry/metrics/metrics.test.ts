import { spawnSync } from 'node:child_process';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { LOCAL_REPLY_CODES } from '../../../src/platform/errors.ts';
import { FAULT_CAUSES } from '../../../src/telemetry/events.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import type { ThrottleSnapshot, TokenSnapshot } from '../../../src/telemetry/metrics/gauges.ts';
import { createMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import type { MetricsOptions } from '../../../src/telemetry/metrics/metrics.ts';
import { readSamples } from './exposition.ts';

const idle: ThrottleSnapshot = {
  route: 'default',
  rate: Infinity,
  pausedMs: 0,
  queued: 0,
  queueMax: 1000,
  inFlight: 0,
  inFlightLimit: 4,
};
const tokenless: TokenSnapshot = {
  credential: 'default',
  expiresWallAt: undefined,
  consecutiveFailures: 0,
  missingScopes: [],
};

const request: RequestRecord = {
  route: 'default',
  method: 'GET',
  path: '/quotes',
  code: 200,
  source: 'upstream',
  durationMs: 12,
  queuedMs: 0,
  attempts: 1,
  requestBytes: 0,
  responseBytes: 10,
};

interface States {
  readonly readTokens?: () => readonly TokenSnapshot[];
  readonly readThrottles?: () => readonly ThrottleSnapshot[];
}

function create({ readTokens, readThrottles, ...options }: Partial<MetricsOptions> & States = {}) {
  const metrics = createMetrics({
    routes: ['default'],
    credentials: ['default'],
    readStates: () => ({
      version: '1.2.3',
      tokens: readTokens?.() ?? [tokenless],
      throttles: readThrottles?.() ?? [idle],
      fleet: undefined,
    }),
    ...options,
  });
  const sample = async (series: string) => readSamples(await metrics.render()).get(`bearer_sidecar_${series}`);
  return { metrics, sample };
}

function lint(text: string): string {
  const promtool = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  if (promtool.error !== undefined) {
    throw new Error('promtool is needed by this test (Debian: the package prometheus)', { cause: promtool.error });
  }
  return `${promtool.stdout}${promtool.stderr}`;
}

describe('series at the start', () => {
  const closedSets: [string, string[]][] = [
    ['local_replies_total', LOCAL_REPLY_CODES.map((code) => `route="default",code="${code}"`)],
    ...['upstream_attempts_total', 'upstream_duration_seconds_count'].map((name): [string, string[]] => [
      name,
      [
        'ok',
        'rate_limited',
        'unauthorized',
        'error_status',
        'cut',
        'client_left',
        'reset',
        'timeout',
        'unreachable',
      ].map((outcome) => `route="default",outcome="${outcome}"`),
    ]),
    ['upstream_faults_total', FAULT_CAUSES.map((cause) => `route="default",cause="${cause}"`)],
    ...['retries_total', 'retry_budget_exhausted_total'].map((name): [string, string[]] => [
      name,
      ['rate_limited', 'unauthorized', 'status', 'reset', 'connect'].map((reason) => `reason="${reason}"`),
    ]),
    ...[
      'rate_limited_total',
      'permits_total',
      'paused',
      'queue_depth',
      'in_flight',
      'limit_confidence',
      'queue_wait_seconds_count',
    ].map((name): [string, string[]] => [name, ['route="default"']]),
    [
      'queue_rejected_total',
      ['full', 'timeout', 'expected_wait', 'quota', 'draining', 'client_left'].map(
        (reason) => `route="default",reason="${reason}"`,
      ),
    ],
    ...['token_requests_total', 'token_request_duration_seconds_count'].map((name): [string, string[]] => [
      name,
      ['ok', 'rejected', 'unavailable', 'malformed'].map((outcome) => `credential="default",outcome="${outcome}"`),
    ]),
    ...[
      'token_endpoint_failures',
      'refresh_token_unkept',
      'token_scopes_missing',
      'credential_rotation_failures_total',
    ].map((name): [string, string[]] => [name, ['credential="default"']]),
    ['insufficient_scope_total', ['route="default"']],
    ['responses_cut_total', ['upstream', 'sidecar'].map((by) => `route="default",by="${by}"`)],
    ['config_reloads_total', ['ok', 'refused', 'invalid'].map((outcome) => `outcome="${outcome}"`)],
    [
      'token_invalidations_total',
      ['unauthorized', 'rotated'].map((reason) => `credential="default",reason="${reason}"`),
    ],
    ...['requests_total', 'request_duration_seconds_count'].map((name): [string, string[]] => [
      name,
      ['GET', 'POST'].map((method) => `route="default",method="${method}",code="200",source="upstream"`),
    ]),
  ];

  it.each(closedSets)('%s: exactly its closed set, at 0', async (name, labels) => {
    const samples = readSamples(await create().metrics.render());
    const found = [...samples.keys()].filter((series) => series.startsWith(`bearer_sidecar_${name}{`));
    expect(found.sort()).toEqual(labels.map((label) => `bearer_sidecar_${name}{${label}}`).sort());
    expect(found.map((series) => samples.get(series))).toEqual(found.map(() => 0));
  });

  it('exist for every route and credential', async () => {
    const { sample } = create({ routes: ['a', 'b'], credentials: ['x', 'y'] });
    expect(await sample('queue_rejected_total{route="b",reason="full"}')).toBe(0);
    expect(await sample('token_requests_total{credential="y",outcome="malformed"}')).toBe(0);
  });

  it('include those without labels and the version', async () => {
    const { sample } = create();
    expect(await sample('client_authorization_overridden_total')).toBe(0);
    expect(await sample('log_lines_dropped_total')).toBe(0);
    expect(await sample('build_info{version="1.2.3"}')).toBe(1);
  });
});

describe('events', () => {
  it('counts and times a request once, by its end', async () => {
    const { metrics, sample } = create();
    metrics.bindRoute('default').recordRequest({ ...request, method: 'POST', code: 499, source: 'sidecar' });
    const labels = 'route="default",method="POST",code="499",source="sidecar"';
    expect(await sample(`requests_total{${labels}}`)).toBe(1);
    expect(await sample(`request_duration_seconds_sum{${labels}}`)).toBe(0.012);
    expect(await sample(`local_replies_total{route="default",code="QUEUE_FULL"}`)).toBe(0);
  });

  it('counts a cut response by its code and by the side that cut it', async () => {
    const { metrics, sample } = create();
    metrics.bindRoute('default').recordRequest({ ...request, fault: 'it broke', cutBy: 'upstream' });
    metrics.bindRoute('default').recordRequest(request);
    const labels = `route="default",method="${request.method}",code="${request.code}",source="upstream"`;
    expect(await sample(`requests_total{${labels}}`)).toBe(2);
    expect(await sample('responses_cut_total{route="default",by="upstream"}')).toBe(1);
    expect(await sample('responses_cut_total{route="default",by="sidecar"}')).toBe(0);
  });

  it.each([
    ['PATCH', 'PATCH'],
    ['PROPFIND', 'other'],
    ['get', 'other'],
    ['__proto__', 'other'],
  ])('method %s is counted as %s', async (method, label) => {
    const { metrics, sample } = create();
    metrics.bindRoute('default').recordRequest({ ...request, method });
    expect(await sample(`requests_total{route="default",method="${label}",code="200",source="upstream"}`)).toBe(1);
  });

  it('each other event updates its own series', async () => {
    const { metrics, sample } = create();
    const { observe } = metrics;
    const counters = metrics.bindRoute('default');
    counters.recordRequest({ ...request, source: 'sidecar', code: 503, localReply: 'DRAINING' });
    counters.recordAttempt('reset', 500, false);
    const failed = { kind: 'attempt-failed', route: 'default', outcome: 'reset', detail: 'x' } as const;
    observe({ ...failed, cause: 'reset_after_sent' });
    observe({ ...failed, cause: undefined });
    observe({ kind: 'retry', route: 'default', reason: 'connect' });
    observe({ kind: 'retry-budget-exhausted', route: 'default', reason: 'status' });
    observe({
      kind: 'rate-limited',
      route: 'default',
      scope: 'route',
      status: 429,
      pauseMs: 1000,
      stated: true,
      fields: {},
    });
    metrics.bindThrottle('default')(2000);
    observe({ kind: 'queue-rejected', route: 'default', reason: 'client_left' });
    observe({ kind: 'token-requested', credential: 'default', outcome: 'rejected', durationMs: 250 });
    observe({ kind: 'token-invalidated', credential: 'default', reason: 'rotated' });
    observe({ kind: 'authorization-overridden' });
    observe({ kind: 'configuration-read', outcome: 'refused', lines: ['a.key'] });
    const moved = {
      'local_replies_total{route="default",code="DRAINING"}': 1,
      'upstream_attempts_total{route="default",outcome="reset"}': 1,
      'upstream_faults_total{route="default",cause="reset_after_sent"}': 1,
      'upstream_duration_seconds_sum{route="default",outcome="reset"}': 0.5,
      'retries_total{reason="connect"}': 1,
      'retry_budget_exhausted_total{reason="status"}': 1,
      'rate_limited_total{route="default"}': 1,
      'permits_total{route="default"}': 1,
      'queue_wait_seconds_sum{route="default"}': 2,
      'queue_rejected_total{route="default",reason="client_left"}': 1,
      'token_requests_total{credential="default",outcome="rejected"}': 1,
      'token_request_duration_seconds_sum{credential="default",outcome="rejected"}': 0.25,
      'token_invalidations_total{credential="default",reason="rotated"}': 1,
      client_authorization_overridden_total: 1,
      'config_reloads_total{outcome="refused"}': 1,
    };
    for (const [series, value] of Object.entries(moved))
      expect([series, await sample(series)]).toEqual([series, value]);
  });

  it('counts an invalid duration as 0', async () => {
    const { metrics, sample } = create();
    for (const waitedMs of [NaN, Infinity, -5]) metrics.bindThrottle('default')(waitedMs);
    expect(await sample('queue_wait_seconds_count{route="default"}')).toBe(3);
    expect(await sample('queue_wait_seconds_sum{route="default"}')).toBe(0);
  });

  it('has buckets from 0.5 ms to 5 min', async () => {
    const { metrics, sample } = create();
    for (const waitedMs of [0.4, 0.9, 59_000, 299_000]) metrics.bindThrottle('default')(waitedMs);
    const below = (bound: string) => sample(`queue_wait_seconds_bucket{le="${bound}",route="default"}`);
    expect(await Promise.all(['0.0005', '0.001', '60', '300', '+Inf'].map(below))).toEqual([1, 2, 3, 4, 4]);
  });
});

describe('credentials and scopes', () => {
  it('counts a rotation as failed when the new credentials were refused or cannot be read', async () => {
    const { metrics, sample } = create();
    const event = { kind: 'credential-rotation', credential: 'default' } as const;
    metrics.observe({ ...event, outcome: 'refused', detail: 'x' });
    metrics.observe({ ...event, outcome: 'unreadable', detail: 'x' });
    metrics.observe({ ...event, outcome: 'taken' });
    expect(await sample('credential_rotation_failures_total{credential="default"}')).toBe(2);
  });

  it('counts insufficient_scope by route and shows the number of missing scopes', async () => {
    let token = tokenless;
    const { metrics, sample } = create({ readTokens: () => [token] });
    metrics.observe({ kind: 'insufficient-scope', route: 'default', needed: 'a' });
    expect(await sample('insufficient_scope_total{route="default"}')).toBe(1);
    token = { ...tokenless, missingScopes: ['a', 'b'] };
    expect(await sample('token_scopes_missing{credential="default"}')).toBe(2);
    token = tokenless;
    expect(await sample('token_scopes_missing{credential="default"}')).toBe(0);
  });
});

describe('gauges', () => {
  it('show the states at the moment of the scrape', async () => {
    let throttle = idle;
    let token = tokenless;
    const { sample } = create({ readThrottles: () => [throttle], readTokens: () => [token] });
    const expiry = 'token_expiry_timestamp_seconds{credential="default"}';
    expect(await sample('permit_rate{route="default"}')).toBe(Infinity);
    expect(await sample(expiry)).toBeUndefined();

    throttle = { ...idle, rate: 12.5, pausedMs: 1, queued: 7, queueMax: 50, inFlight: 3, inFlightLimit: 9 };
    token = { ...tokenless, expiresWallAt: 1_800_000_000_500, consecutiveFailures: 2 };
    expect(await sample('permit_rate{route="default"}')).toBe(12.5);
    expect(await sample('paused{route="default"}')).toBe(1);
    expect(await sample('queue_depth{route="default"}')).toBe(7);
    expect(await sample('queue_limit{route="default"}')).toBe(50);
    expect(await sample('in_flight{route="default"}')).toBe(3);
    expect(await sample('in_flight_limit{route="default"}')).toBe(9);
    expect(await sample(expiry)).toBe(1_800_000_000.5);
    expect(await sample('token_endpoint_failures{credential="default"}')).toBe(2);

    token = tokenless;
    expect(await sample(expiry)).toBeUndefined();
  });

  it('have no inferred limit after it was given up', async () => {
    const learned = { limit: 100, windowMs: 10_000, confidence: 'high' as const };
    let throttle: ThrottleSnapshot = { ...idle, learned };
    const { sample } = create({ readThrottles: () => [throttle] });
    const read = () =>
      Promise.all(
        ['inferred_limit', 'inferred_window_seconds', 'limit_confidence'].map((name) =>
          sample(`${name}{route="default"}`),
        ),
      );
    expect(await read()).toEqual([100, 10, 1]);
    throttle = { ...idle, learned: { limit: 8, confidence: 'low' } };
    expect(await read()).toEqual([8, undefined, 0.5]);
    throttle = { ...idle, learned: { confidence: 'none' } };
    expect(await read()).toEqual([undefined, undefined, 0]);
    throttle = idle;
    expect(await read()).toEqual([undefined, undefined, 0]);
  });

  it('have a series for each declared limit, and a forecast only where it is used up', async () => {
    const day = { name: 'day', calls: 10_000, used: 7412, usedUpAt: 1_800_000_000_500 };
    let throttle: ThrottleSnapshot = {
      ...idle,
      limits: [day, { name: 'hour', calls: 900, used: 0, usedUpAt: Infinity }],
    };
    const { sample } = create({ readThrottles: () => [throttle] });
    const read = (limit: string) =>
      Promise.all(
        ['calls', 'used', 'exhausted_timestamp_seconds'].map((name) =>
          sample(`declared_limit_${name}{route="default",limit="${limit}"}`),
        ),
      );
    expect(await read('day')).toEqual([10_000, 7412, 1_800_000_000.5]);
    expect(await read('hour')).toEqual([900, 0, undefined]);
    throttle = idle;
    expect(await read('day')).toEqual([undefined, undefined, undefined]);
  });

  it('counts dropped log lines as reported by the log', async () => {
    let dropped = 3;
    const { sample } = create({ readDroppedLines: () => dropped });
    expect(await sample('log_lines_dropped_total')).toBe(3);
    dropped = 10;
    expect(await sample('log_lines_dropped_total')).toBe(10);
  });

  it('render rejects when a state cannot be read', async () => {
    const { metrics } = create({
      readTokens: () => {
        throw new Error('no state');
      },
    });
    await expect(metrics.render()).rejects.toThrow('no state');
  });
});

describe('the text as a whole', () => {
  it('passes promtool check metrics, and has the default metrics unprefixed', async () => {
    const learned = { limit: 100, windowMs: 10_000, confidence: 'low' as const };
    const { metrics } = create({ readThrottles: () => [{ ...idle, learned }] });
    metrics.bindRoute('default').recordRequest(request);
    const text = await metrics.render();
    expect(lint(text)).toBe('');
    expect(metrics.contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
    for (const name of ['process_resident_memory_bytes', 'process_cpu_seconds_total', 'nodejs_active_handles'])
      expect(text).toMatch(new RegExp(`^${name}[ {]`, 'm'));
  });

  it('lacks exactly those default metrics that promtool refuses', async () => {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    const names = (text: string) => [...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1] ?? '');
    const defaults = await registry.metrics();
    const refused = lint(defaults)
      .split('\n')
      .map((line) => line.split(' ', 1)[0] ?? '')
      .filter((name) => name !== '');
    const ours = names(await create().metrics.render());
    expect(refused.length).toBeGreaterThan(0);
    expect(
      names(defaults)
        .filter((name) => !ours.includes(name))
        .sort(),
    ).toEqual(refused.sort());
  });
});
