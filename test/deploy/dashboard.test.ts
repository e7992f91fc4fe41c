/**
 * The Grafana dashboard: its file is what the script makes, its JSON is consistent, and each of its queries returns data
 * with data by a real Prometheus that scrapes the sandbox under load, a member of a fleet and a sidecar with a learned limit.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { GrafanaDashboard } from '../../tools/dashboard/dashboard.ts';
import { GENERATED_FILES, ROOT } from '../../tools/dashboard/made-files.ts';
import { call, post } from '../support/calls.ts';
import { writeLearnedWindow } from '../support/learned-limit.ts';
import { panelsOf, queriesOf, substitute } from '../support/dashboard-queries.ts';
import { pollUntil, startPrometheus } from '../support/prometheus.ts';
import type { Prometheus, Series } from '../support/prometheus.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { startRedis } from '../support/redis.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

const text = readFileSync(join(ROOT, 'deploy', 'grafana', 'dashboard.json'), 'utf8');
const dashboard = JSON.parse(text) as GrafanaDashboard;
const queries = queriesOf(dashboard);
const variables = (dashboard.templating.list ?? []).map(({ name }) => name);

/** For the start of a process, on a machine that may be busy. */

const ALL = '.*';
/** As Grafana would have them, for a Prometheus that scrapes each second. */
const VALUES = {
  job: ALL,
  namespace: ALL,
  pod: ALL,
  instance: ALL,
  route: ALL,
  credential: ALL,
  __rate_interval: '10s',
  __range: '30s',
};

it.each(GENERATED_FILES)('%s is as npm run dashboard makes it', async (name, render) => {
  expect(readFileSync(join(ROOT, name), 'utf8')).toBe(await render());
});

describe('the JSON', () => {
  const panels = panelsOf(dashboard);
  const everything = [...(dashboard.panels ?? []), ...panels];

  it('has panels with titles, descriptions, units and unique ids', () => {
    expect(panels.length).toBeGreaterThan(30);
    for (const { title, description, fieldConfig } of panels) {
      expect([title, description]).not.toContain(undefined);
      expect(fieldConfig?.defaults.unit, title).toMatch(/^\w+$/);
    }
    const ids = [...new Set(everything)].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).not.toContain(undefined);
  });

  it('puts no panel over another or beyond the grid', () => {
    const taken = new Set<string>();
    for (const { title, gridPos } of new Set(everything)) {
      const { x, y, w, h } = gridPos ?? { x: -1, y: -1, w: 0, h: 0 };
      expect(x >= 0 && w > 0 && x + w <= 24, title).toBe(true);
      for (let column = x; column < x + w; column++)
        for (let line = y; line < y + h; line++) {
          expect(taken, `${title} at ${column}, ${line}`).not.toContain(`${column},${line}`);
          taken.add(`${column},${line}`);
        }
    }
  });

  it('uses the selected data source in every panel', () => {
    const chosen = { type: 'prometheus', uid: '${datasource}' };
    const lists = [dashboard.templating.list ?? [], dashboard.annotations.list ?? []];
    const others = lists.flat().filter((entry) => !('name' in entry && entry.name === 'datasource'));
    const asking = [...panels, ...panels.flatMap(({ targets = [] }) => targets), ...others] as {
      datasource?: object;
    }[];
    expect(asking.length).toBeGreaterThan(panels.length + queries.length);
    for (const { datasource } of asking) expect(datasource).toEqual(chosen);
  });

  it('has the variables that its queries use, and uses them', () => {
    expect(variables).toEqual(['datasource', 'job', 'namespace', 'pod', 'instance', 'route', 'credential']);
    for (const { expr } of queries) {
      expect(substitute(expr, VALUES)).not.toContain('$');
      for (const name of ['job', 'namespace', 'pod', 'instance']) expect(expr).toContain(`${name}=~"$${name}"`);
    }
  });
});

/** The sandbox as users start it. */
async function startSandbox() {
  const { id, secret } = newCredential();
  const env = {
    SIDECAR_LISTEN: '127.0.0.1:0',
    SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
    SIDECAR_CLIENT_ID: id,
    SIDECAR_CLIENT_SECRET: secret,
    // At the pace of this load it lasts for minutes, and never for a month.
    SIDECAR_THROTTLE_LIMITS: '[{"calls":5000,"per":"30d"}]',
  };
  const sandbox = spawnSidecar({ name: 'dashboard-sandbox', args: ['sandbox'], env });
  onTestFinished(async () => {
    await sandbox.stop('SIGKILL');
  });
  const [proxy, admin] = await Promise.all([sandbox.waitForLine(/^proxy /), sandbox.waitForLine(/^admin /)]);
  return { proxyUrl: proxy.slice('proxy '.length), adminUrl: admin.slice('admin '.length) };
}

/** One replica of a fleet, whose tokens live six seconds. */
async function startMember() {
  const redis = await startRedis();
  const tokens = await startTokenServer({ expiresIn: 6 });
  const upstream = await startRecordingUpstream();
  const env = { ...baseSettings(upstream.url, tokens.url, newCredential()), SIDECAR_REDIS_URL: redis.url };
  const member = await startSidecar({ name: 'dashboard-member', env });
  onTestFinished(async () => {
    await member.stop('SIGKILL');
    await Promise.all([tokens[Symbol.asyncDispose](), upstream[Symbol.asyncDispose]()]);
  });
  await waitUntilReady(member);
  return member;
}

/** A sidecar that has learned a window. What the sandbox's limit is taken for depends on how fast the machine sends. */
async function startExperienced() {
  const tokens = await startTokenServer();
  const upstream = await startRecordingUpstream();
  const credential = newCredential();
  const env = {
    ...baseSettings(upstream.url, tokens.url, credential),
    SIDECAR_THROTTLE_STATE_FILE: writeLearnedWindow(upstream.url, credential.id),
  };
  const sidecar = await startSidecar({ name: 'dashboard-experienced', env });
  onTestFinished(async () => {
    await sidecar.stop('SIGKILL');
    await Promise.all([tokens[Symbol.asyncDispose](), upstream[Symbol.asyncDispose]()]);
  });
  return sidecar;
}

/** Sixteen callers without mercy on the sandbox, which allows five calls a second, until the signal. */
async function load(url: string, signal: AbortSignal): Promise<void> {
  const callers = Array.from({ length: 16 }, async (_, index) => {
    while (!signal.aborted) {
      await (index % 2 === 0 ? post(`${url}/quotes-requests`, { index }) : call(`${url}/quotes-requests`));
      await sleep(50);
    }
  });
  await Promise.all(callers);
}

function hasData(series: readonly Series[]): boolean {
  return series.some(({ values }) => values.some(Number.isFinite));
}

async function withoutData(prometheus: Prometheus, values: Readonly<Record<string, string>>, checked = queries) {
  const responses = checked.map(async (query) => {
    const series = await prometheus.queryRange(substitute(query.expr, values), 10);
    return hasData(series) ? [] : [query];
  });
  return (await Promise.all(responses)).flat();
}

function nameOf({ panel, expr }: (typeof queries)[number]): string {
  return `${panel}: ${expr}`;
}

it('every query returns data', async () => {
  const [sandbox, member, experienced] = await Promise.all([startSandbox(), startMember(), startExperienced()]);
  const targets = [sandbox.adminUrl, member.adminUrl, experienced.adminUrl];
  const prometheus = await startPrometheus({ targets });
  const aborter = new AbortController();
  const loads = [load(sandbox.proxyUrl, aborter.signal), load(member.proxyUrl, aborter.signal)];

  // Some have data for a while only: a limit is shown as long as it is in use.
  let missing = queries;
  await pollUntil(
    async () => (missing = await withoutData(prometheus, VALUES, missing)),
    ({ length }) => length === 0,
  );
  // One sidecar, one route, one credential: what is chosen is found.
  const one = {
    ...VALUES,
    job: 'sidecar',
    instance: new URL(member.adminUrl).host,
    route: 'default',
    credential: 'default',
  };
  const missingOfOne = await withoutData(prometheus, one);
  const unknownInstance = await withoutData(prometheus, { ...VALUES, instance: 'none' });
  const marks = await prometheus.query(substitute(dashboard.annotations.list?.[0]?.expr ?? '', VALUES));
  aborter.abort();
  await Promise.all(loads);

  console.info(`dashboard: ${queries.length - missing.length} of ${queries.length} queries return data`);
  expect(missing.map(nameOf)).toEqual([]);
  // The member has no limit, neither learned nor declared.
  expect(missingOfOne.filter(({ expr }) => !/permit_rate|inferred_|declared_limit_/.test(expr)).map(nameOf)).toEqual(
    [],
  );
  expect(unknownInstance).toHaveLength(queries.length);
  expect(marks).toEqual([]);
});
