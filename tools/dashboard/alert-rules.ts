/** deploy/prometheus/alerts.yaml, from the table of the alerts: conditions as PromQL, and their texts as annotations. */
import { stringify } from 'yaml';
import { ALERTS, runbookOf } from '../../src/admin/alerts/alert-table.ts';
import type { Alert, AlertText } from '../../src/admin/alerts/alert-table.ts';
import { listSubjectKinds } from '../../src/admin/alerts/conditions.ts';
import { METRIC_PREFIX } from '../../src/telemetry/metrics/series.ts';
import { compileCondition } from './promql.ts';
import type { ListLabels } from './promql.ts';
import { OUTSIDE_ALERTS } from './outside-alerts.ts';

const HEAD = `# Made by npm run dashboard from src/admin/alerts/alert-table.ts and tools/dashboard/outside-alerts.ts; do not edit.
# docs/runbooks.md has a section for each alert. runbook_url is a path in this repository until it is replaced by the address where you
# publish that page: docs/operations.md has the command; the Helm chart has podMonitor.runbookBaseUrl.
# critical: requests of the application fail, or will fail within minutes. warning: needs attention within a day.
`;

/** In the order of the file. */
const GROUPS: readonly AlertText['group'][] = ['service', 'token', 'limits', 'upstream', 'process', 'fleet'];

/** A name that Prometheus sees, how it is described, and when it holds. */
interface CompiledAlert extends AlertText {
  readonly name: string;
  readonly expr: string;
  /** Labels of the subject, in the template of the summary. */
  readonly subject: readonly string[];
}

/** In YAML. @param listLabels the labels of a metric */
export function renderAlertRules(listLabels: ListLabels): string {
  const alerts = [...compileTable(listLabels), ...listOutside()];
  const groups = GROUPS.map((group) => ({
    name: `bearer-sidecar-${group}`,
    rules: alerts.filter((alert) => alert.group === group).map(describeRule),
  }));
  return HEAD + stringify({ groups }, { lineWidth: 0 });
}

function compileTable(listLabels: ListLabels): CompiledAlert[] {
  return Object.entries<Alert>(ALERTS).map(([name, alert]) => ({
    ...alert,
    name,
    expr: compileCondition(alert.condition, (metric) => listLabels(`${METRIC_PREFIX}${metric}`)),
    subject: listSubjectKinds(alert.condition).flatMap((kind) => kind ?? []),
  }));
}

function listOutside(): CompiledAlert[] {
  return Object.entries(OUTSIDE_ALERTS).map(([name, alert]) => ({ ...alert, name, expr: alert.promql, subject: [] }));
}

function describeRule({ name, expr, severity, forMs, headline, subject, description }: CompiledAlert) {
  return {
    alert: name,
    expr,
    ...(forMs > 0 && { for: `${forMs / 60_000}m` }),
    labels: { severity },
    annotations: {
      summary: `${fillIn(headline)} (${subject.map(nameSubject).join('')}{{ $labels.instance }})`,
      description,
      runbook_url: runbookOf(name),
    },
  };
}

function fillIn(headline: string): string {
  return headline
    .replace('{share}', '{{ $value | humanizePercentage }}')
    .replace('{count}', '{{ $value | printf "%.0f" }}')
    .replace('{duration}', '{{ $value | humanizeDuration }}');
}

/** An alert on one of two kinds has the label of one of them. */
function nameSubject(label: string, _index: number, all: readonly string[]): string {
  return all.length === 1
    ? `${label} {{ $labels.${label} }}, `
    : `{{ with $labels.${label} }}${label} {{ . }}, {{ end }}`;
}
