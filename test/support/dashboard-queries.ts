/** Takes the queries out of a Grafana dashboard and puts values in the place of its variables, as Grafana does. */
import type { Panel } from '@grafana/grafana-foundation-sdk/dashboard';
import type { Dataquery } from '@grafana/grafana-foundation-sdk/prometheus';
import type { GrafanaDashboard } from '../../tools/dashboard/dashboard.ts';

/** A panel that shows something: a row holds panels, and may be closed. */
export function panelsOf(dashboard: Pick<GrafanaDashboard, 'panels'>): Panel[] {
  return (dashboard.panels ?? []).flatMap((panel) => ('panels' in panel ? panel.panels : [panel]));
}

export interface DashboardQuery {
  readonly panel: string;
  readonly expr: string;
}

export function queriesOf(dashboard: Pick<GrafanaDashboard, 'panels'>): DashboardQuery[] {
  return panelsOf(dashboard).flatMap(({ title = '', targets = [] }) =>
    (targets as Dataquery[]).map(({ expr }) => ({ panel: title, expr })),
  );
}

/** @param values of the variables, by name without the sign; one that is not named is an error */
export function substitute(expr: string, values: Readonly<Record<string, string>>): string {
  return expr.replaceAll(/\$(\w+)/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`the dashboard knows no variable ${name}: ${expr}`);
    return value;
  });
}
