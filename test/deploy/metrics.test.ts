/**
 * The exposition as a real Prometheus and promtool see it: of a registry that has counted every kind of event, and of a sidecar that
 * was called in many ways. And every metric that rules, dashboard and pages name is there.
 */
import { globSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LOCAL_REPLY_CODES } from '../../src/platform/errors.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import type { Metrics } from '../../src/telemetry/metrics/metrics.ts';
import { ROOT } from '../../tools/dashboard/made-files.ts';
import { describeMetrics } from '../../tools/dashboard/metrics-table.ts';
import { call, post, callConcurrently } from '../support/calls.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { pollUntil, runPromtool, startPrometheus } from '../support/prometheus.ts';
import { report } from '../support/recorded-events.ts';
import type { RecordedEvent, RecordedEventOf } from '../support/recorded-events.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { startRedis } from '../support/redis.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { RunningSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { readSamples } from '../telemetry/metrics/exposition.ts';

/** For the start of a process, on a machine that may be busy. */

const route = 'default';
const credential = 'default';

// As keys of a record, so that the compiler misses none.
const EVERY_EVENT: { readonly [K in RecordedEvent['kind']]: readonly RecordedEventOf<K>[] } = {
  'request-ended': ['GET', 'POST', 'MKCALENDAR', 'BREW'].flatMap((method) =>
    [200, 404, 499, 503].map((code) => ({
      kind: 'request-ended' as const,
      route,
      method,
      path: `/quotes/${method}`,
      code,
      source: code === 503 ? ('sidecar' as const) : ('upstream' as const),
      durationMs: 12,
      queuedMs: 1,
      attempts: 1,
      requestBytes: 3,
      responseBytes: 10,
    })),
  ),
  'local-reply': LOCAL_REPLY_CODES.map((code) => ({ kind: 'local-reply', route, code })),
  'attempt-ended': [{ kind: 'attempt-ended', route, outcome: 'timeout', durationMs: 30_000, isOwn: false }],
  'attempt-failed': [
    { kind: 'attempt-failed', route, outcome: 'timeout', cause: 'no_response_in_time', detail: 'no response' },
  ],
  retry: [{ kind: 'retry', route, reason: 'status' }],
  'retry-budget-exhausted': [{ kind: 'retry-budget-exhausted', route, reason: 'reset' }],
  'rate-limited': [
    { kind: 'rate-limited', route, scope: 'route', status: 429, pauseMs: 1000, stated: true, fields: {} },
  ],
  'unconfigured-refusal': [{ kind: 'unconfigured-refusal', route, status: 503 }],
  'assumed-refusal': [{ kind: 'assumed-refusal', route }],
  'limit-assumed': [{ kind: 'limit-assumed', route, status: 503, setting: 'throttle: {}', variable: 'X=' }],
  'foreign-response': [{ kind: 'foreign-response', route, cause: 'foreign_network', detail: '200 with text/html' }],
  'permit-granted': [{ kind: 'permit-granted', route, waitedMs: 120 }],
  'response-broken-off': [{ kind: 'response-broken-off', route, stalledMs: 30_000 }],
  'queue-rejected': [{ kind: 'queue-rejected', route, reason: 'full' }],
  'would-wait': [{ kind: 'would-wait', route, waitedMs: 120 }],
  'would-refuse': [{ kind: 'would-refuse', route }],
  'calls-observed': [
    {
      kind: 'calls-observed',
      route,
      since: 0,
      calls: 2,
      wouldWait: 1,
      wouldWaitMs: 120,
      wouldRefuse: 1,
      certainty: 'exact',
    },
  ],
  'token-requested': [
    { kind: 'token-requested', credential, outcome: 'ok', durationMs: 40 },
    { kind: 'token-requested', credential, outcome: 'malformed', durationMs: 40, detail: 'no JSON' },
  ],
  'token-invalidated': [{ kind: 'token-invalidated', credential, reason: 'rotated' }],
  'token-not-accepted-yet': [{ kind: 'token-not-accepted-yet', credential }],
  'token-accepted-late': [{ kind: 'token-accepted-late', credential, delayMs: 3000 }],
  'token-found': [{ kind: 'token-found', credential, from: 'fleet', validForMs: 1000 }],
  'token-circuit': [{ kind: 'token-circuit', credential, phase: 'open' }],
  'token-scopes-missing': [{ kind: 'token-scopes-missing', credential, missing: ['a scope "with quotes"\n'] }],
  'credential-rotation': [{ kind: 'credential-rotation', credential, outcome: 'refused' }],
  'insufficient-scope': [{ kind: 'insufficient-scope', route, needed: undefined }],
  'token-not-asked': [{ kind: 'token-not-asked', credential, from: 'fleet', outcome: 'unavailable', detail: 'no' }],
  'fleet-joined': [{ kind: 'fleet-joined' }],
  'fleet-degraded': [{ kind: 'fleet-degraded', detail: 'Redis replies too late' }],
  'fleet-lost': [{ kind: 'fleet-lost', detail: 'gone' }],
  'fleet-command': [{ kind: 'fleet-command', outcome: 'timeout' }],
  'configuration-read': [{ kind: 'configuration-read', outcome: 'invalid', lines: ['queue.max: 3 is wrong'] }],
  'unknown-calls-file': [{ kind: 'unknown-calls-file', phase: 'fails', code: 'ENOSPC' }],
  unauthorized: [{ kind: 'unauthorized', route, detail: 'the partner says "invalid_token"' }],
  'clock-compared': [{ kind: 'clock-compared', from: 'auth.test', skewMs: 0 }],
  'state-file-not-written': [{ kind: 'state-file-not-written' }],
  'authorization-overridden': [{ kind: 'authorization-overridden' }],
  listening: [{ kind: 'listening', server: 'proxy', url: 'http://127.0.0.1:18080' }],
  draining: [{ kind: 'draining', inFlight: 1, queued: 1, drainMs: 1000 }],
  stopped: [{ kind: 'stopped', cut: 1 }],
  warning: [{ kind: 'warning', message: 'look' }],
};

/** Two routes and credentials, one of each with a name that needs escaping. */
function metricsOfEverything(): Metrics {
  const names = [route, 'a "quoted" \\ name'];
  const metrics = createMetrics({
    routes: names,
    credentials: names,
    readStates: () => ({
      version: '1.2.3',
      tokens: names.map((name) => ({
        ...{ credential: name, expiresWallAt: 2e12, consecutiveFailures: 1, missingScopes: ['a'] },
      })),
      throttles: names.map((name) => ({
        route: name,
        rate: Infinity,
        pausedMs: 1,
        queued: 3,
        queueMax: 1000,
        inFlight: 2,
        inFlightLimit: 4,
        learned: { limit: 100, windowMs: 10_000, confidence: 'low' as const },
      })),
      fleet: {
        connected: true,
        degraded: false,
        quotas: names.map((name) => ({ route: name, replicas: 3 })),
      },
    }),
    hasFleet: true,
    readDroppedLines: () => 7,
  });
  for (const event of Object.values(EVERY_EVENT).flat()) report(event, metrics);
  return metrics;
}

/** @returns the base URL of an exposition that stays as it is */
async function serve(text: string, contentType: string): Promise<string> {
  const server = createServer((_request, response) =>
    response.writeHead(200, { 'content-type': contentType }).end(text),
  );
  onTestFinished(() => closeServer(server));
  return await listenOnLoopback(server);
}

/** With a fleet, so that all metrics are there. */
async function startMember(): Promise<RunningSidecar> {
  const redis = await startRedis();
  const tokens = await startTokenServer();
  const upstream = await startRecordingUpstream((request, response) => {
    response.writeHead(Number(/status=(\d+)/.exec(request.path)?.[1] ?? 200)).end();
  });
  const env = { ...baseSettings(upstream.url, tokens.url, newCredential()), SIDECAR_REDIS_URL: redis.url };
  const sidecar = await startSidecar({ name: 'metrics-member', env });
  onTestFinished(async () => {
    await sidecar.stop('SIGKILL');
    await Promise.all([tokens[Symbol.asyncDispose](), upstream[Symbol.asyncDispose]()]);
  });
  await waitUntilReady(sidecar);
  return sidecar;
}

async function exposition({ adminUrl }: RunningSidecar): Promise<string> {
  return (await call(`${adminUrl}/metrics`)).text;
}

it('promtool accepts the metrics after every kind of event', async () => {
  const text = await metricsOfEverything().render();
  expect(runPromtool(['check', 'metrics'], text)).toEqual({ code: 0, said: '' });
});

it('a real Prometheus takes every sample, with its type', async () => {
  const metrics = metricsOfEverything();
  const text = await metrics.render();
  const member = await startMember();
  const url = await serve(text, metrics.contentType);
  const prometheus = await startPrometheus({ targets: [url, member.adminUrl] });
  const up = await pollUntil(
    () => prometheus.query('up == 1'),
    ({ length }) => length === 2,
  );
  expect(up.map(({ metric }) => metric.instance).sort()).toEqual(
    [url, member.adminUrl].map((at) => new URL(at).host).sort(),
  );

  const taken = await prometheus.query(`scrape_samples_scraped{instance="${new URL(url).host}"}`);
  expect(taken[0]?.values).toEqual([readSamples(text).size]);
  const metadata = (await prometheus.get('metadata')) as Record<string, { type: string }[]>;
  const types = Object.entries(metadata).map(([name, [first]]) => `${name} ${first?.type}`);
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) expect(types).toContain(`${name} ${type}`);
  const permits = await prometheus.query(`bearer_sidecar_permits_total{route="a \\"quoted\\" \\\\ name"}`);
  expect(permits.map(({ values }) => values)).toEqual([[0]]);
});

describe('a sidecar that was called in many ways', () => {
  it('has as many series as before, but for methods and codes that are new', async () => {
    const member = await startMember();
    await post(`${member.proxyUrl}/first`, {});
    const before = new Set(readSamples(await exposition(member)).keys());
    const agent = (index: number) => ({ 'user-agent': `agent-${index}`, 'x-sidecar-caller': `caller-${index}` });
    await callConcurrently(300, (index) =>
      post(`${member.proxyUrl}/path-${index}?query=${index}`, { index }, agent(index)),
    );
    await callConcurrently(20, (index) => call(`${member.proxyUrl}/x?status=418&n=${index}`, { method: 'PUT' }));
    const text = await exposition(member);
    const added = [...readSamples(text).keys()].filter((series) => !before.has(series));

    expect(runPromtool(['check', 'metrics'], text)).toEqual({ code: 0, said: '' });
    const fresh = added.filter((series) => !series.startsWith('nodejs_'));
    // One combination of labels: a counter and a histogram of 18 buckets, +Inf, sum and count.
    expect(fresh.filter((series) => !series.includes('method="PUT",code="418"'))).toEqual([]);
    expect(fresh).toHaveLength(1 + 21);
    expect(text).not.toMatch(/path-|query=|agent-|caller-/);
    console.info(`series of a sidecar with one route: ${readSamples(text).size}`);
  });
});

/** Names of metrics in a text; what is recorded by a rule has colons. */
function namesIn(text: string): string[] {
  const withoutRecorded = text.replaceAll(/\w+:bearer_sidecar_\w+(?::\w+)?/g, '');
  return [...new Set(withoutRecorded.match(/\b(?:bearer_sidecar|nodejs|process)_[a-z\d_]*[a-z\d]\b/g) ?? [])];
}

it('every metric that rules, dashboard and pages name exists', async () => {
  const text = await exposition(await startMember());
  const known = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = '', type]) =>
    type === 'histogram' ? ['', '_bucket', '_sum', '_count'].map((suffix) => name + suffix) : [name],
  );
  const files = globSync(['deploy/prometheus/*.yaml', 'deploy/grafana/*.json', 'docs/**/*.md', 'README.md'], {
    cwd: ROOT,
  });
  const named = files.flatMap((file) =>
    namesIn(readFileSync(join(ROOT, file), 'utf8')).map((name) => ({ file, name })),
  );
  expect(named.length).toBeGreaterThan(200);
  expect(named.filter(({ name }) => !known.includes(name))).toEqual([]);

  const page = readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8');
  const shown = [...page.matchAll(/^- `(bearer_sidecar_\w+)(?:\{[\w,]+\})?` \((\w+)\): /gm)].map(
    ([, name, type]) => `${name} ${type}`,
  );
  expect(shown).toEqual(describeMetrics(text).map(({ name, type }) => `${name} ${type}`));
});
