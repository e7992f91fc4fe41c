/**
 * What dashboard and alerts need of `metrics.buckets`: each query against a real Prometheus with one sandbox for each setting, and
 * the number of series that docs/operations.md states.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { GrafanaDashboard } from '../../tools/dashboard/dashboard.ts';
import { ROOT } from '../../tools/dashboard/made-files.ts';
import { call, callConcurrently, post } from '../support/calls.ts';
import { queriesOf, substitute } from '../support/dashboard-queries.ts';
import { pollUntil, runPromtool, startPrometheus } from '../support/prometheus.ts';
import { newCredential } from '../support/secrets.ts';
import { spawnSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { readSamples } from '../telemetry/metrics/exposition.ts';

const SETTINGS = ['default', 'few', 'none'] as const;
const LATENCY_PANELS = ['Attempt latency', 'Queue wait', 'Request latency', 'p99 latency'];
const ALL = '.*';

const dashboard = JSON.parse(
  readFileSync(join(ROOT, 'deploy', 'grafana', 'dashboard.json'), 'utf8'),
) as GrafanaDashboard;
const latencyQueries = queriesOf(dashboard).filter(({ panel }) => LATENCY_PANELS.includes(panel));

async function startSandbox(buckets: string) {
  const { id, secret } = newCredential();
  const sandbox = spawnSidecar({
    name: `metrics-buckets-${buckets}`,
    args: ['sandbox'],
    env: {
      SIDECAR_LISTEN: '127.0.0.1:0',
      SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
      SIDECAR_CLIENT_ID: id,
      SIDECAR_CLIENT_SECRET: secret,
      SIDECAR_METRICS_BUCKETS: buckets,
    },
  });
  onTestFinished(async () => {
    await sandbox.stop('SIGKILL');
  });
  const [proxy, admin] = await Promise.all([sandbox.waitForLine(/^proxy /), sandbox.waitForLine(/^admin /)]);
  const urls = { proxyUrl: proxy.slice('proxy '.length), adminUrl: admin.slice('admin '.length) };
  // From here on there is a token, and with it the series of its expiry.
  await waitUntilReady({ ...sandbox, ...urls });
  return { buckets, ...urls };
}

it('each panel and each recorded figure works with each setting, or is one that the page names', async () => {
  const sandboxes = await Promise.all(SETTINGS.map(startSandbox));
  const seriesCounts = new Map<string, number>();
  for (const { buckets, adminUrl } of sandboxes) {
    const { text } = await call(`${adminUrl}/metrics`);
    expect(runPromtool(['check', 'metrics'], text), buckets).toEqual({ code: 0, said: '' });
    const own = [...readSamples(text).keys()].filter((series) => series.startsWith('bearer_sidecar_'));
    seriesCounts.set(buckets, own.length);
  }

  const rules = ['recording.yaml', 'alerts.yaml'].map((file) => join(ROOT, 'deploy', 'prometheus', file));
  const prometheus = await startPrometheus({ targets: sandboxes.map(({ adminUrl }) => adminUrl), rules });
  const hasData = async (expr: string): Promise<boolean> =>
    (await prometheus.queryRange(expr, 10)).some(({ values }) => values.some(Number.isFinite));
  const findMissing = async ({ buckets, adminUrl }: (typeof sandboxes)[number]): Promise<string[]> => {
    const { host } = new URL(adminUrl);
    const names = { job: ALL, namespace: ALL, pod: ALL, instance: host, route: ALL, credential: ALL };
    const values = { ...names, __rate_interval: '10s', __range: '30s' };
    const recorded = ['p50_rate5m', 'p99_rate5m'].map(
      (name) => `route:bearer_sidecar_request_duration_seconds:${name}`,
    );
    const wait = 'route:bearer_sidecar_queue_wait_seconds';
    const checked = [
      ...latencyQueries.map(({ panel, expr }) => ({ name: panel, expr: substitute(expr, values) })),
      ...[...recorded, `${wait}:p95_rate5m`, `${wait}:mean_rate5m`].map((name) => ({
        name,
        expr: `${name}{instance="${host}"}`,
      })),
    ];
    const results = await Promise.all(
      checked.map(async ({ name, expr }) => ((await hasData(expr)) ? [] : [{ name, expr }])),
    );
    return results
      .flat()
      .map(({ name, expr }) => `${buckets}: ${name}: ${expr.includes('quantile') ? 'quantile' : 'other'}`);
  };
  const findAllMissing = async (): Promise<string[]> => (await Promise.all(sandboxes.map(findMissing))).flat();
  const withoutQuantiles = [
    ...latencyQueries.filter(({ expr }) => expr.includes('quantile')).map(({ panel }) => `none: ${panel}: quantile`),
    'none: route:bearer_sidecar_request_duration_seconds:p50_rate5m: other',
    'none: route:bearer_sidecar_request_duration_seconds:p99_rate5m: other',
    'none: route:bearer_sidecar_queue_wait_seconds:p95_rate5m: other',
  ];
  const missing = await pollUntil(
    async () => {
      for (const { proxyUrl } of sandboxes)
        await callConcurrently(2, (index) => post(`${proxyUrl}/quotes-requests`, { index }));
      return await findAllMissing();
    },
    ({ length }) => length <= withoutQuantiles.length,
  );
  expect(missing).toEqual(withoutQuantiles);

  const page = readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8');
  const table = [...page.matchAll(/^\| `(default|few|none)` +\| (\d+) +\|/gm)].map(([, name, count]) => [
    name,
    Number(count),
  ]);
  expect(table).toEqual([...seriesCounts]);
});
