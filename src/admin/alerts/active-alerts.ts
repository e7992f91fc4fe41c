/** The alerts whose conditions hold in this process now (pure). Prometheus sends one only after its `for`; here it holds at once. */
import { formatDuration, formatInteger, formatLatency, formatShare } from '../quantity-texts.ts';
import type { Samples } from '../samples/sample-ring.ts';
import { ALERT_NAMES, ALERTS, type AlertName } from './alert-table.ts';
import { createConditionInputs, evaluateCondition, listSubjectKinds } from './conditions.ts';

export interface ActiveAlert {
  readonly name: AlertName;
  readonly subject: string | undefined;
  /** A share from 0 to 1, a number of events or seconds, as the alert's expression gives it. */
  readonly value: number;
}

export interface AlertInputs {
  readonly samples: Samples;
  readonly wallNow: number;
  readonly throttles: readonly { readonly route: string }[];
  readonly tokens: readonly { readonly credential: string }[];
}

/** Longer than any window of a condition. */
const RECENT_MS = 30 * 60_000;

/** Critical ones first, then in the order of the table. */
export function evaluateAlerts(given: AlertInputs): readonly ActiveAlert[] {
  const inputs = createConditionInputs(given.samples, given.wallNow);
  const subjects = listSubjects(given);
  const names = (['critical', 'warning'] as const).flatMap((severity) =>
    ALERT_NAMES.filter((name) => ALERTS[name].severity === severity),
  );
  return names.flatMap((name) => {
    const { condition } = ALERTS[name];
    const kinds = listSubjectKinds(condition);
    const own = new Set(kinds.flatMap((kind) => (kind === undefined ? [''] : subjects[kind])));
    return [...own].flatMap((subject) => {
      const value = evaluateCondition(condition, subject, inputs);
      return value === undefined ? [] : [{ name, subject: subject === '' ? undefined : subject, value }];
    });
  });
}

/** A throttle that several routes share has a name of its own; these routes are known by their traffic. */
function listSubjects({ samples, throttles, tokens }: AlertInputs): Readonly<Record<'route' | 'credential', string[]>> {
  const called = ['requests_total', 'upstream_attempts_total'].flatMap((metric) => [
    ...samples.increaseBy('route', metric, RECENT_MS).keys(),
  ]);
  return {
    route: [...new Set([...throttles.map(({ route }) => route), ...called])],
    credential: tokens.map(({ credential }) => credential),
  };
}

/** @param value a share from 0 to 1, a number of events, or seconds. tools/dashboard/alert-rules.ts does the same for Prometheus */
export function formatHeadline(name: AlertName, value: number): string {
  return ALERTS[name].headline
    .replace('{share}', () => formatShare(value))
    .replace('{count}', () => formatInteger(value))
    .replace('{duration}', () => (value < 60 ? formatLatency : formatDuration)(value * 1000));
}
