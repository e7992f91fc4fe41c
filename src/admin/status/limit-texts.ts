/**
 * What is known of the partner's limits, in words (pure): one line each, for the status, the page and `bearer-sidecar status --limits`,
 * whose text may be sent to the partner. It names no client, host or path but the operations that were refused.
 */
import { describeStatedValue } from '../../throttle/signals/stated-fields.ts';
import {
  describeCounted,
  formatCount,
  formatDuration,
  formatInteger,
  formatLatency,
  formatRate,
} from '../quantity-texts.ts';
import type { Status } from './status.ts';

type Throttle = Status['throttle'];
type Declared = Throttle['limits'][number];
type Lane = Throttle['lanes'][number];

export type Row = readonly [name: string, words: string];

export function toRows(name: string, texts: readonly string[]): Row[] {
  return texts.map((text) => [name, text]);
}

export function describeRate({ unpaced, rate }: Throttle): string {
  return unpaced || rate === null ? 'unlimited' : `${formatRate(rate)} per second`;
}

/** Without its time, which a page shows in local time. */
export function describeLearned(learned: Throttle['learned']): string {
  if (learned === null) return 'none detected';
  const { limit, windowSeconds, kind, confidence, rate } = learned;
  if (confidence === 'none') return rate === null ? 'none detected' : 'detected, not identified yet';
  const perSecond = rate === null ? '' : `about ${formatRate(rate)} per second`;
  const calls =
    limit === null
      ? perSecond
      : kind === 'bucket'
        ? `${perSecond}, burst ${limit}`
        : windowSeconds === null
          ? formatCount(limit, 'concurrent request')
          : `${formatCount(limit, 'request')} per ${windowSeconds < 1 ? formatLatency(windowSeconds * 1000) : formatDuration(windowSeconds * 1000)}`;
  return `${calls} (${kind}, learned, ${confidence} confidence)`;
}

/** What the partner's quota fields do to the rate; empty while none holds back requests, and all are believed. */
export function describeQuotaFields(throttle: Pick<Throttle, 'heldBy' | 'disbelievedFields'>): string[] {
  const { heldBy, disbelievedFields } = throttle;
  const wrong = disbelievedFields.map((name) => `field ${name} disbelieved: calls are accepted beyond it`);
  return heldBy === null ? wrong : [`held by the partner's field ${heldBy}`, ...wrong];
}

/** Empty while limits are enforced. */
export function describeObserved({ observed }: Pick<Throttle, 'observed'>): string[] {
  if (observed === null) return [];
  const { since, calls, certainty, wouldWait, wouldWaitSeconds, wouldRefuse } = observed;
  const waits = `${formatInteger(wouldWait)} would have waited, ${formatLatency(wouldWaitSeconds * 1000)} all together, and ${formatInteger(wouldRefuse)} would have been rejected`;
  const words = certainty === 'exact' ? waits : 'unknown how many would have waited: a limit is not declared';
  return [`limits are not enforced: of ${formatCount(calls, 'call')} since ${since}, ${words}`];
}

/** The limit of one operation beside that of its route. */
export function describeLane({ operations, learned, pausedSeconds, queued, refused, scope }: Lane): string {
  const state = scope === 'shown' ? 'its own limit' : 'perhaps its own limit, being tested';
  const pause =
    pausedSeconds === null || pausedSeconds < 1 ? '' : `, paused for ${formatDuration(pausedSeconds * 1000)}`;
  return `${operations.join(', ')}: ${describeLearned(learned)}, ${state}${pause}, ${formatInteger(queued)} queued, ${formatInteger(refused)} refused`;
}

export function describeDeclaredUse(limit: Declared): string {
  const { calls, per, used } = limit;
  return `${formatInteger(used)} of ${formatInteger(calls)} calls per ${per}${describeCounted(limit)}`;
}

export function describeDeclared(limit: Declared): string {
  const { name, calls, used, usedUpAt, resetsAt } = limit;
  const forecast = usedUpAt === null || used >= calls ? '' : `, used up at ${usedUpAt} at this pace`;
  return `${name}: ${describeDeclaredUse(limit)}${forecast}${resetsAt === null ? '' : `, resets at ${resetsAt}`}`;
}

/** The header fields of a refusal that state a limit. */
export function describeFields(fields: Throttle['recentSignals'][number]['fields']): string {
  const headers = Object.entries(fields).map(([name, value]) => `${name}: ${describeStatedValue(value)}`);
  return headers.length > 0 ? headers.join('; ') : 'without a header field that states a limit';
}

/** What was learned, declared and assumed of one throttle, and what was refused since the start. */
export function listLimitRows(throttle: Throttle): readonly Row[] {
  const { mode, learned, limits, lanes, refusedOperation, assumed, refusals, recentSignals, unpaced } = throttle;
  const since = learned === null || learned.confidence === 'none' ? '' : `, since ${learned.since}`;
  return [
    ['rate', `${describeRate(throttle)}${mode === 'static' && !unpaced ? ', configured' : ''}`],
    ...toRows('learned', mode === 'static' ? [] : [`${describeLearned(learned)}${since}`]),
    ...toRows('declared', limits.map(describeDeclared)),
    ...toRows('observes', describeObserved(throttle)),
    ...toRows('operation', lanes.map(describeLane)),
    ...toRows(
      'operation',
      refusedOperation === null || lanes.length > 0 ? [] : [`${refusedOperation} is refused, and no other`],
    ),
    ...toRows('assumed', assumed.map(describeAssumed)),
    ...toRows('stated', describeQuotaFields(throttle)),
    ...toRows('refused', refusals.length === 0 ? ['none since the start'] : refusals.map(describeRefusals)),
    ...toRows(
      'last',
      recentSignals.slice(0, 1).map(({ fields }) => describeFields(fields)),
    ),
  ];
}

function describeAssumed({ status, since, count, endpoints }: Throttle['assumed'][number]): string {
  return `${status} without a stated limit is taken for one since ${since}: ${formatCount(count, 'refusal')}, ${endpoints.join(', ')}; not confirmed`;
}

function describeRefusals({ status, count, firstAt, lastAt }: Throttle['refusals'][number]): string {
  return `${formatInteger(count)} with ${status}, the first at ${firstAt}, the last at ${lastAt}`;
}
