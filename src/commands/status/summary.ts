/** The state of a running sidecar as text: a summary for a screen, and one line for a log (pure). Texts of the status are escaped. */
import { formatDuration, formatInteger, formatLatency, formatRate } from '../../admin/quantity-texts.ts';
import { toSingleLine } from '../../config/load/problems.ts';
import type { Paint, TextRole } from '../terminal.ts';
import { listCalls, type RunningAlert, type RunningStatus } from './running-status.ts';

type Token = RunningStatus['tokens'][number];
type Throttle = RunningStatus['throttles'][number];

/** The most important fact. */
export interface RunningState {
  readonly role: Extract<TextRole, 'good' | 'warning' | 'bad'>;
  readonly text: string;
  /** Whether new requests can be sent upstream: no drain, and a usable token of every credential. */
  readonly isServing: boolean;
}

const MAX_SIGNALS = 5;
const NAME_WIDTH = 9;

const ROLES: Readonly<Record<string, RunningState['role']>> = { good: 'good', wait: 'warning', bad: 'bad' };

/** The verdict; an older sidecar has none. */
export function describeState({ draining, tokens, degraded, verdict }: RunningStatus): RunningState {
  const isServing = !draining && tokens.every(isUsable);
  if (verdict !== undefined) return { role: ROLES[verdict.level] ?? 'warning', text: verdict.headline, isServing };
  const text = isServing ? `ready${degraded.length > 0 ? ', with warnings' : ''}` : draining ? 'draining' : 'no token';
  return { role: isServing && degraded.length === 0 ? 'good' : 'warning', text, isServing };
}

/** Lines without line ends. */
export function describeStatusLines(status: RunningStatus, paint: Paint): string[] {
  const { version, uptimeSeconds, pid, tokens, throttles, degraded, alerts = [], verdict } = status;
  const { role, text } = describeState(status);
  const process = pid === undefined || pid === null ? '' : `, process ${pid}`;
  const rows = [
    ...listVerdict(verdict).map(([name, words]) => [name, words, ''] as const),
    ...describeFailedCall(status).map((words) => ['failed', words, ''] as const),
    ...tokens.map((token) => ['token', describeToken(token), nameOf(token.credential, tokens)] as const),
    ...throttles.map((throttle) => ['limit', describeLimit(throttle), nameOf(throttle.route, throttles)] as const),
    ...throttles.flatMap((throttle) =>
      describeDeclared(throttle).map((words) => ['declared', words, nameOf(throttle.route, throttles)] as const),
    ),
    ...throttles.map((throttle) => ['queue', describeQueue(throttle), nameOf(throttle.route, throttles)] as const),
    ...describeSignals(throttles).map((signal, at) => [at === 0 ? 'refusals' : '', signal, ''] as const),
    ...alerts.map((alert, at) => [at === 0 ? 'alerts' : '', `${describeAlert(alert)}, ${alert.severity}`, ''] as const),
    ...degraded.map((warning, at) => [at === 0 ? 'warnings' : '', warning, ''] as const),
  ];
  return [
    `${paint('heading', toSingleLine(`bearer-sidecar ${version}`))}  ${paint(role, toSingleLine(text))}`,
    paint('quiet', `up ${formatDuration(uptimeSeconds * 1000)}${process}`),
    '',
    ...rows.map(
      ([name, words, suffix]) => `  ${paint('name', name.padEnd(NAME_WIDTH))} ${toSingleLine(words + suffix)}`,
    ),
  ];
}

/** Of one that has more to say than its headline. */
function listVerdict(verdict: RunningStatus['verdict']): (readonly [string, string])[] {
  if (verdict === undefined) return [];
  const { where, detail, since, advice, other } = verdict;
  return [
    ...(where === 'none' ? [] : [['where', `${where}${since === null ? '' : `, since ${since}`}`] as const]),
    ['detail', detail],
    ...(other === null ? [] : [['also', other] as const]),
    ...(advice === null ? [] : [['do', advice] as const]),
  ];
}

/** The newest of the last calls that failed: what a partner asks for. Empty for none. */
function describeFailedCall(running: RunningStatus): string[] {
  const call = listCalls(running).find(({ status }) => status >= 400);
  if (call === undefined) return [];
  const { at, method, path, status, source, reason, durationSeconds, requestId, upstreamRequestId } = call;
  const ids = `${upstreamRequestId === null ? '' : `, upstreamRequestId ${upstreamRequestId}`}, requestId ${requestId}`;
  const origin = `${status} of the ${source}${reason === null ? '' : ` (${reason})`}`;
  return [`${method} ${path} at ${at}: ${origin} after ${formatLatency(durationSeconds * 1000)}${ids}`];
}

/** One line without a line end. */
export function describeStatusLine(status: RunningStatus): string {
  const { throttles, tokens } = status;
  const shortest = Math.min(...tokens.map(validForSecondsOf));
  const queued = throttles.reduce((sum, throttle) => sum + throttle.queued, 0);
  const inFlight = throttles.reduce((sum, throttle) => sum + throttle.inFlight, 0);
  const parts = [
    describeState(status).text,
    `token ${describeLifetime(shortest)}`,
    ...throttles.map((throttle) => describeLimit(throttle) + nameOf(throttle.route, throttles)),
    `${queued} queued, ${inFlight} in flight`,
    ...describeSignals(throttles)
      .slice(0, 1)
      .map((signal) => `last refusal ${signal}`),
  ];
  return toSingleLine(parts.join('; '));
}

/** Each has a page of that name in docs/runbooks. */
function describeAlert({ name, subject }: RunningAlert): string {
  return subject === null ? name : `${name} (${subject})`;
}

function isUsable(token: Token): boolean {
  return validForSecondsOf(token) > 0;
}

/** 0 without a token, Infinity for one without an expiry. */
function validForSecondsOf({ status, validForSeconds }: Token): number {
  return status === 'none' ? 0 : (validForSeconds ?? Infinity);
}

function describeLifetime(seconds: number): string {
  return seconds === Infinity ? 'without an expiry' : `valid for ${formatDuration(seconds * 1000)}`;
}

/** With a single one its name says nothing. */
function nameOf(name: string, all: readonly unknown[]): string {
  return all.length === 1 ? '' : ` (${name})`;
}

function failureOf({ lastFailure }: Token): string {
  return lastFailure?.detail ?? 'not requested yet';
}

function describeToken(token: Token): string {
  if (!isUsable(token)) return `none: ${failureOf(token)}`;
  const state = token.status === 'suspect' ? ', refused by the upstream' : '';
  const scope = token.scope === null || token.scope === '' ? '' : `, scope ${token.scope}`;
  return `${describeLifetime(validForSecondsOf(token))}${state}${scope}`;
}

function describeLimit({ mode, rate, learned, pausedSeconds }: Throttle): string {
  const pause =
    pausedSeconds === null
      ? ', paused until the upstream accepts a call'
      : pausedSeconds > 0
        ? `, paused for ${formatDuration(pausedSeconds * 1000)}`
        : '';
  if (rate === null) return `none${mode === 'static' ? '' : ' known'}${pause}`;
  const perSecond = `${formatRate(rate)} requests per second`;
  if (learned === null) return `${perSecond}, configured${pause}`;
  const window =
    learned.limit === null || learned.windowSeconds === null
      ? ''
      : ` (${learned.limit} in ${formatDuration(learned.windowSeconds * 1000)})`;
  return `${perSecond}, learned${window}, confidence ${learned.confidence}${pause}`;
}

function describeDeclared({ limits = [] }: Throttle): string[] {
  return limits.map(({ name, calls, per, used, usedUpAt, resetsAt }) => {
    const forecast = usedUpAt === null || used >= calls ? '' : `, used up at ${usedUpAt} at this pace`;
    return `${name}: ${formatInteger(used)} of ${formatInteger(calls)} calls per ${per}${forecast}${resetsAt === null ? '' : `, resets at ${resetsAt}`}`;
  });
}

function describeQueue({ queued, inFlight, inFlightLimit }: Throttle): string {
  return `${queued} waiting, ${inFlight} in flight${inFlightLimit === null ? '' : ` of at most ${inFlightLimit}`}`;
}

/** Newest first. */
function describeSignals(throttles: readonly Throttle[]): string[] {
  return throttles
    .flatMap(({ route, recentSignals }) => recentSignals.map((signal) => ({ ...signal, route })))
    .sort((one, other) => other.at.localeCompare(one.at))
    .slice(0, MAX_SIGNALS)
    .map(({ at, status, pauseSeconds, stated, route }) => {
      const pause = pauseSeconds === null ? '' : `, pause ${pauseSeconds} s${stated ? ' as stated' : ''}`;
      return `${status} at ${at}${pause}${nameOf(route, throttles)}`;
    });
}
