/** What the declared limits of each throttle mean: a step for each, with a warning where one has no effect. Pure, but for time zones. */
import { isDeepStrictEqual } from 'node:util';
import { findThrottleGroups, type Config, type RouteConfig } from '../../config/config.ts';
import { formatInteger } from '../../admin/quantity-texts.ts';
import { formatInstant } from '../../platform/instant-text.ts';
import { describeMatch } from '../../throttle/declared/call-match.ts';
import type { DeclaredLimit } from '../../throttle/declared/declared-limit.ts';
import { createLimitWindow, periodMs } from '../../throttle/declared/limit-window.ts';
import { formatTarget, type CheckStep } from './step-runner.ts';

/** @param wallNow epoch milliseconds, of which the calendar windows are shown */
export function listDeclaredLimits(config: Config, wallNow: number): readonly CheckStep[] {
  return [...findThrottleGroups(config)].flatMap(([group, { throttle }]) =>
    throttle.limits.map((limit): CheckStep => {
      const fault = findIdleTerms(limit, throttle);
      return {
        step: 'limits',
        target: formatTarget(limit.name, group),
        ms: 0,
        detail: describeDeclaredLimit(limit, wallNow),
        outcome: fault === undefined ? 'ok' : 'warn',
        advice: fault,
      };
    }),
  );
}

function describeDeclaredLimit(limit: DeclaredLimit, wallNow: number): string {
  const { calls, per, window, timeZone, countsRefused, spread, reserve, match, each } = limit;
  const end = createLimitWindow(limit).endOf(wallNow);
  const isOfDates = per === '1d' || per === '1mo';
  const parts = [
    `${formatInteger(calls)} calls per ${per}${match === undefined ? '' : ` to ${describeMatch(match)}`}, ${window}${window === 'calendar' && isOfDates ? ` in ${timeZone}` : ''}`,
    ...(end === undefined || !isOfDates ? [] : [`this window ends at ${formatInstant(end)}`]),
    ...(spread === 'even' ? ['spread evenly'] : []),
    ...(reserve > 0 ? [`${formatInteger(reserve)} kept for x-sidecar-priority: high`] : []),
    ...(each === true ? ['each value of * has a count of its own'] : []),
    ...(countsRefused ? [] : ['refused calls do not count']),
  ];
  return parts.join('; ');
}

/** Why the limit can never hold back a call; undefined where it can. */
function findIdleTerms(limit: DeclaredLimit, { limits, rate, burst, maxRate }: RouteConfig['throttle']) {
  const left = limit.calls - limit.reserve;
  const includesCalls = (other: DeclaredLimit): boolean =>
    other.match === undefined || (other.each !== true && isDeepStrictEqual(other.match, limit.match));
  const tighter = limits.find(
    (other) => other !== limit && other.calls <= left && includesWindow(other, limit) && includesCalls(other),
  );
  if (tighter !== undefined)
    return `it never holds back a call, since ${tighter.name} allows no more in as long a time`;
  const [setting, paced, saved] = rate === 'auto' ? ['throttle.maxRate', maxRate, 1] : ['throttle.rate', rate, burst];
  const most = paced === undefined ? Infinity : saved + (paced * periodMs(limit.per)) / 1000;
  return most < left
    ? `it never holds back a call, since ${setting} allows ${formatInteger(most)} calls in this time`
    : undefined;
}

/** Whether each call that counts for `shorter` counts for `longer` at least as long. Of two calendar windows, one may begin within the other. */
function includesWindow(longer: DeclaredLimit, shorter: DeclaredLimit): boolean {
  const isSame = longer.window === shorter.window && longer.per === shorter.per && longer.timeZone === shorter.timeZone;
  const isAsLong = longer.window === 'sliding' && periodMs(longer.per) >= periodMs(shorter.per);
  return (isSame || isAsLong) && (longer.countsRefused || !shorter.countsRefused);
}
