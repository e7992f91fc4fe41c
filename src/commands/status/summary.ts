/** The state of a running sidecar as text: a summary for a screen, and one line for a log (pure). Texts of the status are escaped. */
import { formatCount, formatDuration, formatRate } from '../../admin/page/format.ts';
import { toSingleLine } from '../../config/load/problems.ts';
import type { Paint, TextRole } from '../terminal.ts';
import type { RunningAlert, RunningStatus } from './running-status.ts';

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

/** The first that applies, the most severe first. */
export function describeState({ draining, tokens, throttles, degraded, alerts = [] }: RunningStatus): RunningState {
  const left = throttles.reduce((sum, { queued, inFlight }) => sum + queued + inFlight, 0);
  if (draining)
    return { role: 'warning', text: `draining: ${formatCount(left, 'request')} in progress`, isServing: false };
  const without = tokens.filter((token) => !isUsable(token));
  const failed = without.find(({ lastFailure }) => lastFailure !== null);
  if (failed !== undefined)
    return {
      role: 'bad',
      text: `no token${nameOf(failed.credential, tokens)}: ${failureOf(failed)}`,
      isServing: false,
    };
  if (without.length > 0) return { role: 'warning', text: 'starting: no token yet', isServing: false };
  const critical = alerts.find(({ severity }) => severity === 'critical');
  if (critical !== undefined) return { role: 'bad', text: `critical: ${describeAlert(critical)}`, isServing: true };
  const unnamed = throttles.flatMap(({ refusalProposals }) => refusalProposals)[0];
  if (unnamed !== undefined)
    return { role: 'warning', text: `likely rate limited; if so, set ${unnamed.setting}`, isServing: true };
  const limited = throttles.find(({ queued, pausedSeconds }) => queued > 0 || isPaused(pausedSeconds));
  if (limited !== undefined)
    return { role: 'warning', text: `rate limited${nameOf(limited.route, throttles)}`, isServing: true };
  return degraded.length > 0
    ? { role: 'warning', text: 'ready, with warnings', isServing: true }
    : { role: 'good', text: 'ready', isServing: true };
}

/** Lines without line ends. */
export function describeStatusLines(status: RunningStatus, paint: Paint): string[] {
  const { version, uptimeSeconds, pid, tokens, throttles, degraded, alerts = [] } = status;
  const { role, text } = describeState(status);
  const process = pid === undefined || pid === null ? '' : `, process ${pid}`;
  const rows = [
    ...tokens.map((token) => ['token', describeToken(token), nameOf(token.credential, tokens)] as const),
    ...throttles.map((throttle) => ['limit', describeLimit(throttle), nameOf(throttle.route, throttles)] as const),
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

/** One line without a line end. */
export function describeStatusLine(status: RunningStatus): string {
  const { throttles, tokens } = status;
  const shortest = tokens.reduce((least, { validForSeconds }) => Math.min(least, validForSeconds ?? 0), Infinity);
  const queued = throttles.reduce((sum, throttle) => sum + throttle.queued, 0);
  const inFlight = throttles.reduce((sum, throttle) => sum + throttle.inFlight, 0);
  const parts = [
    describeState(status).text,
    `token valid for ${formatDuration(shortest * 1000)}`,
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

function isUsable({ status, validForSeconds }: Token): boolean {
  return status !== 'none' && (validForSeconds ?? 0) > 0;
}

function isPaused(seconds: number | null): boolean {
  return seconds === null || seconds > 0;
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
  return `valid for ${formatDuration((token.validForSeconds ?? 0) * 1000)}${state}${scope}`;
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
