/** The rules of deploy/prometheus for a Prometheus that is run by its operator: what kustomize and the Helm chart ship. */
import { parse, stringify } from 'yaml';

interface RuleFile {
  readonly groups: readonly unknown[];
}

const HEAD = '# Made by npm run dashboard from deploy/prometheus/recording.yaml and alerts.yaml; do not edit.\n';

/** One PrometheusRule object with all groups, in YAML. @param files texts of rule files, those first that others build on */
export function renderPrometheusRule(files: readonly string[]): string {
  const object = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'bearer-sidecar' },
    spec: groupsOf(files),
  };
  return HEAD + stringify(object, { lineWidth: 0 });
}

/** The groups alone, in YAML: the chart has an object around them whose name and labels are the release's. */
export function renderRuleGroups(files: readonly string[]): string {
  return HEAD + stringify(groupsOf(files), { lineWidth: 0 });
}

function groupsOf(files: readonly string[]): RuleFile {
  return { groups: files.flatMap((file) => (parse(file) as RuleFile).groups) };
}
