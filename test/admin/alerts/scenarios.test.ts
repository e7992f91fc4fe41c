/** The scenarios on the ring of samples. test/deploy/alerts.test.ts has promtool evaluate the same ones. */
import { describe, expect, it } from 'vitest';
import { evaluateAlerts } from '../../../src/admin/alerts/active-alerts.ts';
import type { AlertInputs } from '../../../src/admin/alerts/active-alerts.ts';
import { ALERT_NAMES, ALERTS } from '../../../src/admin/alerts/alert-table.ts';
import { createConditionInputs, evaluateCondition } from '../../../src/admin/alerts/conditions.ts';
import type { Condition } from '../../../src/admin/alerts/conditions.ts';
import { PlayedSamples } from '../samples/played-samples.ts';
import { isOutside, SCENARIOS } from './scenarios.ts';
import type { Expectation, Scenario } from './scenarios.ts';
import { minutes, STEP_MS } from './scenario-series.ts';
import type { ScenarioSeries } from './scenario-series.ts';

const PER_STEP = STEP_MS / 1000;
const LIMITS = ['above', 'below'] as const;

/** Applies what happens at a step. */
function playStep(played: PlayedSamples, series: ScenarioSeries, step: number): void {
  switch (series.kind) {
    case 'counter': {
      const before = step === 0 ? 0 : (series.valueAt(step - 1) ?? 0);
      const growth = (series.valueAt(step) ?? 0) - before;
      if (growth > 0) played.count(series.metric, series.labels, growth);
      return;
    }
    case 'gauge': {
      const value = series.valueAt(step);
      if (value === undefined) played.remove(series.metric, series.labels);
      else played.set(series.metric, series.labels, value);
      return;
    }
    case 'durations':
      for (const { seconds, perStep } of step === 0 ? [] : series.observed)
        played.observe(series.metric, seconds * 1000, series.labels, perStep);
      return;
    case 'outside':
  }
}

/** Calls back at each minute for which something is expected, with what can be read then. */
function play({ series, expected }: Scenario, read: (inputs: AlertInputs, expectation: Expectation) => void): void {
  const played = new PlayedSamples();
  const labelsOf = (name: string): string[] => [...new Set(series.flatMap(({ labels }) => labels[name] ?? []))];
  const names = {
    throttles: labelsOf('route').map((route) => ({ route })),
    tokens: labelsOf('credential').map((credential) => ({ credential })),
  };
  const last = minutes(Math.max(...expected.map(({ minute }) => minute)));
  for (let step = 0; step <= last; step++) {
    // The values of a step are in the sample at its time.
    if (step > 0) played.play(PER_STEP - 1);
    for (const each of series) playStep(played, each, step);
    if (step > 0) played.play(1);
    for (const expectation of expected.filter(({ minute }) => minutes(minute) === step))
      read({ samples: played.samples, wallNow: played.now, ...names }, expectation);
  }
}

/** A condition, and each way to change one of its limits. */
function* changeLimits(condition: Condition): Generator<Condition> {
  switch (condition.form) {
    case 'all':
    case 'any':
      for (const [index, part] of condition.conditions.entries())
        for (const changed of changeLimits(part))
          yield { ...condition, conditions: condition.conditions.with(index, changed) };
      return;
    case 'unless':
      for (const changed of changeLimits(condition.condition)) yield { ...condition, condition: changed };
      for (const changed of changeLimits(condition.unless)) yield { ...condition, unless: changed };
      return;
    default:
      for (const limit of LIMITS) {
        const value = (condition as Partial<Record<typeof limit, number>>)[limit];
        // Of the states 0 and 1 a factor must pass one.
        for (const factor of value === undefined ? [] : limit === 'below' ? [0, 2] : [0.7, 1.5])
          yield { ...condition, [limit]: value === 0 ? 1e6 : (value ?? 0) * factor };
      }
  }
}

describe('the alerts of /status', () => {
  it.each(SCENARIOS)('$name', (scenario) => {
    play(scenario, (inputs, { minute, holds, routes }) => {
      const alerts = evaluateAlerts(inputs);
      const names = holds.filter((name) => !isOutside(name));
      expect([minute, [...new Set(alerts.map(({ name }) => name))].sort()]).toEqual([minute, [...names].sort()]);
      if (routes !== undefined) expect(alerts.map(({ subject }) => subject)).toEqual(routes);
    });
  });

  it.each(ALERT_NAMES)('a scenario of %s fails when one of its limits changes', (name) => {
    const { condition } = ALERTS[name];
    const own = SCENARIOS.filter((scenario) => scenario.name.includes(name));
    const differs = (changed: Condition): boolean =>
      own.some((scenario) => {
        let isOther = false;
        play(scenario, (inputs, { holds }) => {
          const subjects = [
            ...inputs.throttles.map(({ route }) => route),
            ...inputs.tokens.map(({ credential }) => credential),
            '',
          ];
          const conditionInputs = createConditionInputs(inputs.samples, inputs.wallNow);
          const isHeld = subjects.some((subject) => evaluateCondition(changed, subject, conditionInputs) !== undefined);
          if (isHeld !== holds.includes(name)) isOther = true;
        });
        return isOther;
      });
    expect(own.length).toBeGreaterThan(1);
    expect(differs(condition)).toBe(false);
    const changes = [...changeLimits(condition)];
    expect(changes.filter((changed) => !differs(changed))).toEqual([]);
  });
});
