/**
 * The rules for Prometheus: checked by promtool with series made for them, and by a real Prometheus with sidecars in health and in
 * trouble. Each alert has a test in which it fires, and a runbook.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../../tools/dashboard/made-files.ts';
import { renderRuleTests } from '../admin/alerts/rule-tests.ts';
import { SCENARIOS } from '../admin/alerts/scenarios.ts';
import { call, post, callConcurrently } from '../support/calls.ts';
import { freePort } from '../support/loopback.ts';
import { pollUntil, runPromtool, startPrometheus } from '../support/prometheus.ts';
import { ALERT_FILE, RECORDING_FILE, startAlertReader } from '../support/prometheus-alerts.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { RunningSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { render } from './chart.ts';

const RUNBOOKS = readFileSync(join(ROOT, 'docs', 'runbooks.md'), 'utf8');

/** Several processes start together, on a machine that may be busy. */

interface RuleFile {
  readonly groups: readonly {
    readonly name: string;
    readonly rules: readonly {
      readonly alert?: string;
      readonly record?: string;
      readonly expr: string;
      readonly labels?: Readonly<Record<string, string>>;
      readonly annotations?: Readonly<Record<string, string>>;
    }[];
  }[];
}

function groupsOf(file: string) {
  return (parse(readFileSync(file, 'utf8')) as RuleFile).groups;
}

function rulesOf(file: string) {
  return groupsOf(file).flatMap(({ rules }) => rules);
}

function runbookUrlsIn(groups: RuleFile['groups']): (string | undefined)[] {
  const rules = groups.flatMap((group) => group.rules);
  return rules.filter(({ alert }) => alert !== undefined).map(({ annotations }) => annotations?.runbook_url);
}

const alerts = rulesOf(ALERT_FILE);
const names = alerts.map(({ alert = '' }) => alert).sort();

describe('promtool', () => {
  it('accepts the rules', () => {
    expect(runPromtool(['check', 'rules', ALERT_FILE, RECORDING_FILE])).toMatchObject({ code: 0 });
    const config = join(ROOT, 'deploy', 'prometheus', 'prometheus.yml');
    expect(runPromtool(['check', 'config', config])).toMatchObject({ code: 0 });
  });

  it('sees each alert fire for its fault, and none for a healthy sidecar', () => {
    const folder = mkdtempSync(join(tmpdir(), 'rule-tests-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    const file = join(folder, 'scenarios.json');
    const groups = groupsOf(ALERT_FILE).map(({ name }) => name);
    writeFileSync(file, renderRuleTests(SCENARIOS, [ALERT_FILE], groups));
    const { code, said } = runPromtool(['test', 'rules', file]);
    expect([code, said]).toEqual([0, expect.stringContaining('SUCCESS')]);
    const fired = SCENARIOS.flatMap(({ expected }) => expected.flatMap(({ fires }) => fires));
    expect([...new Set(fired)].sort()).toEqual(names);
  });
});

describe('each alert', () => {
  it('states its severity, its cause and its runbook', () => {
    for (const { alert = '', labels, annotations } of alerts) {
      expect(labels?.severity, alert).toMatch(/^(critical|warning)$/);
      expect(Object.keys(annotations ?? {}), alert).toEqual(['summary', 'description', 'runbook_url']);
      expect(annotations?.runbook_url).toBe(`docs/runbooks.md#${alert.toLowerCase()}`);
    }
  });

  it('links to the published runbooks with the command of docs/operations.md, and with the value of the chart', () => {
    const page = readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8');
    const [, command = ''] = /^(sed .* deploy\/prometheus\/alerts\.yaml) > alerts\.yaml$/m.exec(page) ?? [];
    const rewritten = execFileSync('sh', ['-c', command], { cwd: ROOT, encoding: 'utf8' });
    const expected = alerts.map(({ alert = '' }) => `https://wiki.example/runbooks#${alert.toLowerCase()}`);
    expect(runbookUrlsIn((parse(rewritten) as RuleFile).groups)).toEqual(expected);
    for (const runbookBaseUrl of ['https://wiki.example/runbooks', 'https://wiki.example/runbooks/']) {
      const objects = render({ mode: 'standalone', podMonitor: { enabled: true, runbookBaseUrl } });
      const { spec } = objects.find(({ kind }) => kind === 'PrometheusRule') as unknown as { spec: RuleFile };
      expect(runbookUrlsIn(spec.groups)).toEqual(expected);
    }
    expect(() => render({ mode: 'standalone', podMonitor: { enabled: true, runbookBaseUrl: 'wiki' } })).toThrow(
      /runbookBaseUrl/,
    );
  });

  it('has a runbook, and each runbook an alert', () => {
    const sections = RUNBOOKS.split(/^## /m).slice(1);
    expect(sections.map((section) => section.split('\n')[0]).sort()).toEqual(names);
    // What it means, a query that confirms it, what to do, and at the end what not to do.
    for (const section of sections)
      expect(section).toMatch(/^\w+\n\n\S.*?\n\n```promql\n.*?```\n\n.*?\n\n\*\*Do not\*\* .*\s$/s);
  });
});

it('the queries of the runbooks are understood by Prometheus', async () => {
  const prometheus = await startPrometheus({ targets: [] });
  const queries = [...RUNBOOKS.matchAll(/```promql\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
    block.trim().split('\n'),
  );
  expect(queries.length).toBeGreaterThan(names.length);
  for (const query of queries) await expect(prometheus.query(query), query).resolves.toEqual([]);
});

describe('docs/operations.md and the runbooks', () => {
  const pages = ['operations.md', 'runbooks.md'].map((page) => {
    const file = join(ROOT, 'docs', page);
    return { file, text: readFileSync(file, 'utf8') };
  });

  it('link to existing pages', () => {
    const links = pages.flatMap(({ file, text }) =>
      [...text.matchAll(/\]\(([^)#]+)/g)].map(([, link = '']) => join(dirname(file), link)),
    );
    expect(links.length).toBeGreaterThan(names.length);
    expect(links.filter((link) => !existsSync(link))).toEqual([]);
  });

  it('quote lines of the log as the log has them', () => {
    const sources = globSync('src/telemetry/**/*.ts', { cwd: ROOT }).map((file) =>
      readFileSync(join(ROOT, file), 'utf8'),
    );
    // A few messages are made from the kinds of events.
    const said = sources.join('\n').replaceAll('-', ' ');
    const table = pages[0]!.text.split('| message')[1]?.split('\n\n')[0] ?? '';
    const quoted = table.split('\n').flatMap((row) => (row.split('|')[1] ?? '').match(/(?<=`)[^`]{5,}(?=`)/g) ?? []);
    expect(quoted.length).toBeGreaterThan(10);
    expect(quoted.filter((message) => !said.includes(message.replaceAll('-', ' ')))).toEqual([]);
  });
});

/** Ends with the test. */
async function startWith(name: string, upstreamUrl: string, tokenUrl: string): Promise<RunningSidecar> {
  const env = baseSettings(upstreamUrl, tokenUrl, newCredential());
  const sidecar = await startSidecar({ name: `alerts-${name}`, env });
  onTestFinished(async () => {
    await sidecar.stop('SIGKILL');
  });
  return sidecar;
}

/** Names of the alerts in /status, sorted. */
async function readStatusAlerts({ adminUrl }: RunningSidecar): Promise<string[]> {
  const { text } = await call(`${adminUrl}/status`);
  const { alerts } = JSON.parse(text) as { readonly alerts: readonly { readonly name: string }[] };
  return [...new Set(alerts.map(({ name }) => name))].sort();
}

it('real sidecars: no alert for a healthy one, and the intended alerts for the others, in /status as well', async () => {
  await using tokens = await startTokenServer();
  await using refusing = await startRecordingUpstream((_request, response) => {
    response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}');
  });
  await using api = await startRecordingUpstream();
  await using resetting = await startRecordingUpstream((_request, response) => {
    response.destroy();
  });
  const closedUrl = `http://127.0.0.1:${await freePort()}`;
  const healthy = await startWith('healthy', api.url, tokens.url);
  const refused = await startWith('refused', api.url, refusing.url);
  const alone = await startWith('alone', closedUrl, tokens.url);
  const reset = await startWith('reset', resetting.url, tokens.url);
  await Promise.all([healthy, alone, reset].map((sidecar) => waitUntilReady(sidecar)));
  const targets = [healthy, refused, alone, reset].map(({ adminUrl }) => adminUrl);
  const { prometheus, readAlerts } = await startAlertReader(targets);

  const offer = async () => {
    const responses = [healthy, refused, alone, reset].map(({ proxyUrl }) =>
      callConcurrently(4, () => post(`${proxyUrl}/x`, {})),
    );
    await Promise.all(responses);
    return Promise.all([refused, alone, reset].map(({ adminUrl }) => readAlerts(adminUrl)));
  };
  const expected = [
    ['BearerSidecarRequestsFailing', 'BearerSidecarTokenEndpointFailing', 'BearerSidecarTokenMissing'],
    ['BearerSidecarRequestsFailing', 'BearerSidecarUpstreamUnreachable'],
    ['BearerSidecarOutcomeUnknown', 'BearerSidecarRequestsFailing', 'BearerSidecarUpstreamUnreachable'],
  ];
  // Retries end with the first second of an outage, which may be over before the first scrape: chance says whether this one is seen.
  const byChance = 'BearerSidecarRetryBudgetExhausted';
  const troubled = await pollUntil(offer, (seen) =>
    seen.every((some, at) => expected[at]?.every((name) => some.includes(name))),
  );
  const inStatus = await Promise.all([alone, reset].map(readStatusAlerts));
  await refused.stop('SIGKILL');
  const down = await pollUntil(
    () => prometheus.query(`ALERTS{alertname="BearerSidecarDown", instance="${new URL(refused.adminUrl).host}"}`),
    (seen) => seen.length > 0,
  );

  expect(troubled.map((seen) => seen.filter((name) => name !== byChance))).toEqual(expected);
  expect(inStatus.map((seen) => seen.filter((name) => name !== byChance))).toEqual(expected.slice(1));
  expect(down).toHaveLength(1);
  expect(await readAlerts(healthy.adminUrl)).toEqual([]);
  const rules = await prometheus.rules();
  expect(rules).toHaveLength(alerts.length + rulesOf(RECORDING_FILE).length);
  expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
  const words = rules.flatMap((rule) => (rule.alerts ?? []).flatMap(({ annotations }) => Object.values(annotations)));
  expect(words.length).toBeGreaterThan(8);
  for (const text of words) expect(text).not.toMatch(/error|<no value>|\{\{/i);
  const ratio = `route:bearer_sidecar_requests_failed:ratio_rate5m{instance="${new URL(healthy.adminUrl).host}"}`;
  expect((await prometheus.query(ratio)).map(({ values }) => values)).toEqual([[0]]);
  expect((await call(`${healthy.adminUrl}/readyz`)).status).toBe(200);
});
