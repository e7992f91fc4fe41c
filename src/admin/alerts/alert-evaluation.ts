/**
 * The alerts whose conditions hold now (pure), from the samples of this process. Prometheus sends an alert only after its `for`; here it
 * holds from the first second.
 */
import { ALERT_NAMES, ALERTS } from './alert-table.ts';
import type { AlertName } from './alert-table.ts';
import { evaluateCondition, listSubjectKinds } from './conditions.ts';
import type { Condition, ConditionInputs } from './conditions.ts';

export interface ActiveAlert {
  readonly name: AlertName;
  /** The route or the credential; undefined when the alert is about the process. */
  readonly subject: string | undefined;
  /** A share from 0 to 1, a number of events or seconds, as the alert's expression gives it. */
  readonly value: number;
}

export interface AlertInputs extends ConditionInputs {
  /** Of routes, and of the throttles that several of them share. */
  readonly routes: readonly string[];
  readonly credentials: readonly string[];
}

/** Critical ones first, then in the order of the table. */
export function evaluateAlerts(inputs: AlertInputs): readonly ActiveAlert[] {
  const names = [...ALERT_NAMES].sort((one, other) => rank(one) - rank(other));
  return names.flatMap((name) => {
    const { condition } = ALERTS[name];
    return listSubjects(condition, inputs).flatMap((subject) => {
      const value = evaluateCondition(condition, subject, inputs);
      return value === undefined ? [] : [{ name, subject: subject === '' ? undefined : subject, value }];
    });
  });
}

function rank(name: AlertName): number {
  return ALERTS[name].severity === 'critical' ? 0 : 1;
}

function listSubjects(condition: Condition, { routes, credentials }: AlertInputs): readonly string[] {
  const kinds = listSubjectKinds(condition);
  if (kinds.includes(undefined)) return [''];
  return [
    ...new Set([...(kinds.includes('route') ? routes : []), ...(kinds.includes('credential') ? credentials : [])]),
  ];
}
