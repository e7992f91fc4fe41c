/** The list of alerts, read from the rules. */
import { parse } from 'yaml';
import { runbookOf } from '../../src/admin/alerts/alert-table.ts';

interface RuleFile {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string;
      readonly for?: string;
      readonly labels: { readonly severity: string };
    }[];
  }[];
}

/** In Markdown, by severity and by how long the condition lasts first. @param rules the text of deploy/prometheus/alerts.yaml */
export function renderAlertsList(rules: string): string {
  const alerts = (parse(rules) as RuleFile).groups.flatMap((group) => group.rules);
  const groups = Map.groupBy(alerts, ({ labels, for: lasts = 'at once' }) => `${labels.severity}, ${lasts}`);
  const rows = Array.from(groups, ([when, rules]) => {
    const links = rules.map(({ alert }) => `[${alert}](${runbookOf(alert).replace('docs/', '')})`);
    return `- ${when}: ${links.join(', ')}`;
  });
  return [...rows.toSorted((one, other) => one.localeCompare(other, 'en', { numeric: true })), ''].join('\n');
}
