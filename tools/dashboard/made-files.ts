/** The texts of the files that `npm run dashboard` makes, formatted as everything else is. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderAlertRules } from './alert-rules.ts';
import { renderAlertsList } from './alerts-table.ts';
import { buildDashboard } from './dashboard.ts';
import { readMetricLabels, renderMetricsTable } from './metrics-table.ts';
import { renderPrometheusRule, renderRuleGroups } from './prometheus-rule.ts';
import { formatText } from '../format-text.ts';

export const ROOT = join(import.meta.dirname, '..', '..');

const OPERATIONS = join(ROOT, 'docs', 'operations.md');
const RECORDING_RULES = join(ROOT, 'deploy', 'prometheus', 'recording.yaml');

/** deploy/grafana/dashboard.json, whole; the chart has the same, since helm reads no file outside of its folder. */
async function renderDashboardFile(): Promise<string> {
  return await formatText(JSON.stringify(buildDashboard()), join(ROOT, 'deploy', 'grafana', 'dashboard.json'));
}

/** deploy/prometheus/alerts.yaml, whole. */
async function renderAlertsFile(): Promise<string> {
  return await formatText(renderAlertRules(await readMetricLabels()), 'alerts.yaml');
}

/** Of kustomize's component, whole. */
async function renderRuleComponent(): Promise<string> {
  return await formatText(renderPrometheusRule(await readRules()), 'prometheus-rule.yaml');
}

/** Of the Helm chart, whole. */
async function renderChartRules(): Promise<string> {
  return await formatText(renderRuleGroups(await readRules()), 'rules.yaml');
}

async function readRules(): Promise<readonly string[]> {
  return [readFileSync(RECORDING_RULES, 'utf8'), await renderAlertsFile()];
}

/** docs/operations.md with a new table of metrics and list of alerts. @throws Error when a marker is missing */
async function renderOperations(): Promise<string> {
  const page = readFileSync(OPERATIONS, 'utf8');
  const withMetrics = insertMade(page, 'metrics', await renderMetricsTable());
  return await formatText(insertMade(withMetrics, 'alerts', renderAlertsList(await renderAlertsFile())), OPERATIONS);
}

/** Each file by its path, and what makes its text. */
export const GENERATED_FILES: readonly (readonly [name: string, render: () => Promise<string>])[] = [
  ['deploy/grafana/dashboard.json', renderDashboardFile],
  ['deploy/helm/bearer-sidecar/dashboard.json', renderDashboardFile],
  ['deploy/prometheus/alerts.yaml', renderAlertsFile],
  ['deploy/kubernetes/components/monitoring/prometheus-rule.yaml', renderRuleComponent],
  ['deploy/helm/bearer-sidecar/rules.yaml', renderChartRules],
  ['docs/operations.md', renderOperations],
];

/** A table or list stands between two comments with its name. */
function insertMade(page: string, name: string, table: string): string {
  const [begin, end] = [`<!-- ${name}: made by npm run dashboard -->`, `<!-- end of ${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/operations.md has lost the place of its ${name}`);
  return `${page.slice(0, from + begin.length)}\n\n${table}\n${page.slice(to)}`;
}
