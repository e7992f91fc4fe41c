/** The scenarios as a test file of promtool. */
import { sumExposedBuckets } from '../../../src/telemetry/metrics/duration-buckets.ts';
import type { Scenario } from './scenarios.ts';
import { minutes, STEP_MS } from './scenario-series.ts';
import type { PlayedDurations, ScenarioSeries } from './scenario-series.ts';

interface InputSeries {
  readonly series: string;
  readonly values: string;
}

const EXPOSED_BOUNDS = [...sumExposedBuckets([])].flatMap(([bound]) => (bound === '+Inf' ? [] : [bound]));
/** The default of Prometheus. */
const EVALUATION_INTERVAL = '1m';
const TARGET = { job: 's', instance: 'a' };

/** In JSON, which YAML includes. @param groups of rules, in the order in which they are evaluated */
export function renderRuleTests(
  scenarios: readonly Scenario[],
  ruleFiles: readonly string[],
  groups: readonly string[],
) {
  const interval = `${STEP_MS / 1000}s`;
  return JSON.stringify({
    rule_files: ruleFiles,
    evaluation_interval: EVALUATION_INTERVAL,
    // Without it promtool evaluates the groups in any order.
    group_eval_order: groups,
    tests: scenarios.map((scenario) => ({
      name: scenario.name,
      interval,
      input_series: listInput(scenario),
      promql_expr_test: listExpressions(scenario),
    })),
  });
}

function listInput({ series, expected }: Scenario): InputSeries[] {
  const last = minutes(Math.max(...expected.map(({ minute }) => minute)));
  return series.flatMap((each) => (each.kind === 'durations' ? listBuckets(each, last) : [listValues(each, last)]));
}

function listValues(
  { kind, metric, labels, valueAt }: Exclude<ScenarioSeries, PlayedDurations>,
  last: number,
): InputSeries {
  const name = kind === 'outside' ? metric : `bearer_sidecar_${metric}`;
  const values = Array.from({ length: last + 1 }, (_, step) =>
    String(valueAt(step) ?? (valueAt(step - 1) === undefined ? '_' : 'stale')),
  );
  return { series: `${name}${formatLabels(labels)}`, values: values.join(' ') };
}

function listBuckets(
  { metric, labels, observed, bounds = EXPOSED_BOUNDS }: PlayedDurations,
  last: number,
): InputSeries[] {
  const countUpTo = (bound: number): number =>
    observed.reduce((sum, { seconds, perStep }) => sum + (seconds <= bound ? perStep : 0), 0);
  const grow = (suffix: string, perStep: number, le?: string): InputSeries => ({
    series: `bearer_sidecar_${metric}_${suffix}${formatLabels({ ...labels, ...(le !== undefined && { le }) })}`,
    values: `0+${perStep}x${last}`,
  });
  return [
    ...(bounds.length === 0 ? [] : [...bounds, Infinity]).map((bound) =>
      grow('bucket', countUpTo(Number(bound)), bound === Infinity ? '+Inf' : String(bound)),
    ),
    grow('count', countUpTo(Infinity)),
    grow(
      'sum',
      observed.reduce((sum, { seconds, perStep }) => sum + seconds * perStep, 0),
    ),
  ];
}

function listExpressions({ expected, notYet }: Scenario) {
  return [
    ...expected.flatMap(({ minute, holds, fires, routes }) => [
      expect('count by (alertname) (ALERTS)', minute, holds.map(nameAlert)),
      expect('count by (alertname) (ALERTS{alertstate="firing"})', minute, fires.map(nameAlert)),
      ...(routes === undefined
        ? []
        : [
            expect(
              'count by (route) (ALERTS)',
              minute,
              routes.map((route) => `{route="${route}"}`),
            ),
          ]),
    ]),
    ...(notYet === undefined
      ? []
      : [expect(`count(ALERTS{alertstate="firing", alertname="${notYet.alert}"})`, notYet.minute, [])]),
  ];
}

function nameAlert(name: string): string {
  return `{alertname="${name}"}`;
}

function expect(expr: string, minute: number, labels: readonly string[]) {
  const samples = labels.map((each) => ({ labels: each, value: 1 }));
  return { expr, eval_time: `${minute * 60}s`, exp_samples: samples };
}

function formatLabels(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries({ ...TARGET, ...labels }).map(([name, value]) => `${name}="${value}"`);
  return `{${pairs.join(', ')}}`;
}
