/** The texts of the files that `npm run dashboard` makes, formatted as everything else is. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { renderAlertsTable } from './alerts-table.ts';
import { buildDashboard } from './dashboard.ts';
import { renderMetricsTable } from './metrics-table.ts';

export const ROOT = join(import.meta.dirname, '..', '..');

const OPERATIONS = join(ROOT, 'docs', 'operations.md');
const RULES = join(ROOT, 'deploy', 'prometheus', 'alerts.yaml');

/** deploy/grafana/dashboard.json, whole. */
export async function renderDashboardFile(): Promise<string> {
  return await formatted(JSON.stringify(buildDashboard()), join(ROOT, 'deploy', 'grafana', 'dashboard.json'));
}

/** docs/operations.md as it is, with fresh tables. @throws Error when it has no place for one */
export async function renderOperations(): Promise<string> {
  const page = readFileSync(OPERATIONS, 'utf8');
  const withMetrics = placeTable(page, 'metrics', await renderMetricsTable());
  return await formatted(placeTable(withMetrics, 'alerts', renderAlertsTable(readFileSync(RULES, 'utf8'))), OPERATIONS);
}

/** A table stands between two comments with its name. */
function placeTable(page: string, name: string, table: string): string {
  const [begin, end] = [`<!-- ${name}: made by npm run dashboard -->`, `<!-- end of ${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/operations.md has lost the place of its table of ${name}`);
  return `${page.slice(0, from + begin.length)}\n\n${table}\n${page.slice(to)}`;
}

async function formatted(text: string, file: string): Promise<string> {
  return await format(text, { ...(await resolveConfig(file)), filepath: file });
}
