/** The thresholds of the page are those of the alerts that ship. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ALERT_RULES, ALERTS_OUTSIDE_PAGE } from '../../../src/admin/alerts/alert-rules.ts';

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: { readonly severity: string };
}

const rulesOf = (file: string): Rule[] => {
  const text = readFileSync(join(import.meta.dirname, '../../../deploy/prometheus', file), 'utf8');
  return (parse(text) as { readonly groups: readonly { readonly rules: readonly Rule[] }[] }).groups.flatMap(
    ({ rules }) => rules,
  );
};
const alerts = new Map(rulesOf('alerts.yaml').map((rule) => [rule.alert, rule]));
const records = new Map(rulesOf('recording.yaml').map(({ record, expr }) => [record, expr]));

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };
const toMs = (duration: string): number => Number(duration.slice(0, -1)) * (UNIT_MS[duration.slice(-1)] ?? NaN);

/** Recorded series replaced by their expressions, until none is left. */
function expand(expr: string): string {
  const expanded = [...records].reduce((text, [name, body]) => text.replaceAll(name ?? '', `(${body})`), expr);
  return expanded === expr ? expr : expand(expanded);
}

const unique = (values: readonly number[]): number[] => [...new Set(values)].sort((one, other) => one - other);

describe('the thresholds of the status page', () => {
  it.each(Object.values(ALERT_RULES))('are those of $alert', ({ alert, severity, forMs, limits }) => {
    const rule = alerts.get(alert);
    if (rule === undefined) throw new Error(`${alert} is not in alerts.yaml`);
    const windows = [...expand(rule.expr).matchAll(/(?:\[|offset )(\d+[smh])/g)].map(([, length = '']) => toMs(length));
    // A comparison with 0 as a guard, and the states of a gauge, are no thresholds.
    const compared = [...rule.expr.matchAll(/[<>]\s*([\d.]+)/g)].map(([, value]) => Number(value));
    const named = Object.entries<number>(limits);
    expect(unique(windows)).toEqual(unique(named.filter(([key]) => key.endsWith('Ms')).map(([, value]) => value)));
    expect(unique(compared)).toEqual(unique(named.filter(([key]) => !key.endsWith('Ms')).map(([, value]) => value)));
    expect({ severity: rule.labels?.severity, forMs: toMs(rule.for ?? '0s') }).toEqual({ severity, forMs });
  });

  it('exist for every alert, apart from those that one process cannot see', () => {
    const known = [...Object.values(ALERT_RULES).map(({ alert }) => alert), ...ALERTS_OUTSIDE_PAGE];
    expect([...known].sort()).toEqual([...alerts.keys()].sort());
  });
});
