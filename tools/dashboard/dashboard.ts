/** Joins rows, variables and marks into one dashboard of Grafana's classic model, which older ones read, too. */
/* oxlint-disable typescript/no-deprecated -- the newer model is read by Grafana 13 and later only */
import {
  AnnotationQueryBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { createBars, createGraph, createStat, DATASOURCE, panelWidth } from './panels.ts';
import type { Panel } from './panels.ts';
import { ROWS, TARGET_LABELS } from './rows.ts';
import type { Row } from './rows.ts';

const BUILD = 'bearer_sidecar_build_info';

/** Each narrows the next. */
const VARIABLES: readonly (readonly [name: string, label: string, metric: string])[] = [
  ['job', 'Job', BUILD],
  ['namespace', 'Namespace', `${BUILD}{job=~"$job"}`],
  ['pod', 'Pod', `${BUILD}{job=~"$job", namespace=~"$namespace"}`],
  ['instance', 'Instance', `${BUILD}{job=~"$job", namespace=~"$namespace", pod=~"$pod"}`],
  // A throttle that several routes share has a name of its own.
  ['route', 'Route', `{__name__=~"bearer_sidecar_(requests|permits)_total", ${TARGET_LABELS}}`],
  ['credential', 'Credential', `bearer_sidecar_token_requests_total{${TARGET_LABELS}}`],
];

/** As Grafana describes it. */
export type GrafanaDashboard = Dashboard;

/** The dashboard; the same each time. */
export function buildDashboard(): Dashboard {
  const builder = new DashboardBuilder('bearer-sidecar')
    .uid('bearer-sidecar')
    .description('OAuth 2.0 tokens, throttling and retries before a partner API. Made by tools/dashboard; do not edit.')
    .tags(['bearer-sidecar'])
    .timezone('browser')
    .tooltip(DashboardCursorSync.Crosshair)
    .time({ from: 'now-1h', to: 'now' })
    .refresh('30s')
    .variables([new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'), ...variables()])
    .annotation(alerts());
  let lastId = 0;
  const nextId = (): number => ++lastId;
  for (const row of ROWS) addRow(builder, row, nextId);
  return builder.build();
}

function addRow(builder: DashboardBuilder, row: Row, nextId: () => number): void {
  const head = new RowBuilder(row.title).id(nextId()).collapsed(row.collapsed ?? false);
  const panels = panelsOf(row, nextId);
  // The panels of a closed row are inside it, those of an open one beside it.
  if (row.collapsed === true) for (const panel of panels) head.withPanel(panel);
  builder.withRow(head);
  if (row.collapsed !== true) for (const panel of panels) builder.withPanel(panel);
}

function panelsOf({ figures = [], graphs }: Row, nextId: () => number): Panel[] {
  return [
    ...figures.map((shown) => createStat(nextId(), panelWidth(figures.length), shown)),
    ...graphs.flatMap((line) =>
      line.map((shown) => (shown.isBars === true ? createBars : createGraph)(nextId(), panelWidth(line.length), shown)),
    ),
  ];
}

function variables(): QueryVariableBuilder[] {
  return VARIABLES.map(([name, label, metric]) =>
    new QueryVariableBuilder(name)
      .label(label)
      .datasource(DATASOURCE)
      .query({ query: `label_values(${metric}, ${name})`, refId: name })
      .definition(`label_values(${metric}, ${name})`)
      .refresh(VariableRefresh.OnTimeRangeChanged)
      .sort(VariableSort.AlphabeticalAsc)
      .multi(true)
      .includeAll(true)
      // Also matches where there is no such label: outside Kubernetes there are no pods.
      .allValue('.*')
      .current({ selected: true, text: ['All'], value: ['$__all'] }),
  );
}

/** Marks on every graph: an alert of deploy/prometheus/alerts.yaml fires. */
function alerts(): AnnotationQueryBuilder {
  return new AnnotationQueryBuilder()
    .name('Alerts')
    .datasource(DATASOURCE)
    .enable(true)
    .iconColor('red')
    .expr('ALERTS{alertname=~"BearerSidecar.*", alertstate="firing", job=~"$job", instance=~"$instance"}')
    .titleFormat('{{alertname}}')
    .textFormat('{{instance}} {{route}} {{credential}}')
    .step('60s');
}
