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

/** In Markdown, in the order of the file: severity, and how long the condition lasts first. @param rules the text of deploy/prometheus/alerts.yaml */
export function renderAlertsList(rules: string): string {
  const alerts = (parse(rules) as RuleFile).groups.flatMap((group) => group.rules);
  const rows = alerts.map(
    (rule) =>
      `- [${rule.alert}](${runbookOf(rule.alert).replace('docs/', '')}): ${rule.labels.severity}, ${rule.for ?? 'at once'}`,
  );
  return [...rows, ''].join('\n');
}
