/** Reads /status of a running sidecar. Another program, or another version, may respond: what is used is checked. */
import type { Status } from '../../admin/status/status-shape.ts';
import type { ListenAddressConfig } from '../../config/config.ts';
import { requestAdminPort } from '../admin-port.ts';

const RESPONSE_TIMEOUT_MS = 2000;
const MAX_SHOWN_LENGTH = 300;

/** The status, or why there is none. */
export type StatusReading =
  { readonly kind: 'read'; readonly status: RunningStatus } | { readonly kind: 'unavailable'; readonly why: string };

/** An older sidecar states less. */
export type RunningStatus = Omit<Status, 'pid' | 'configuration' | 'alerts' | 'verdict'> & {
  readonly pid?: number | null;
  readonly alerts?: readonly RunningAlert[];
  readonly verdict?: RunningVerdict;
  readonly configuration?: Partial<Status['configuration'] & object> | null;
};

/** Whose fault it is. */
export type RunningVerdict = Pick<Status['verdict'], 'where' | 'headline' | 'detail' | 'since' | 'advice' | 'other'> & {
  readonly level: string;
};

/** An alert whose condition holds. */
export interface RunningAlert {
  readonly name: string;
  readonly severity: string;
  /** The route or the credential. */
  readonly subject: string | null;
}

/** Never rejects. @param stop aborts the request */
export async function readRunningStatus(address: ListenAddressConfig, stop: AbortSignal): Promise<StatusReading> {
  const until = AbortSignal.any([stop, AbortSignal.timeout(RESPONSE_TIMEOUT_MS)]);
  const { status, text } = await requestAdminPort(address, '/status', until);
  if (status === undefined) return { kind: 'unavailable', why: text };
  if (status !== 200)
    return { kind: 'unavailable', why: `the admin port responds with ${status}: ${text.slice(0, MAX_SHOWN_LENGTH)}` };
  const found = parseStatus(text);
  return found === undefined
    ? { kind: 'unavailable', why: 'what responds is not a bearer-sidecar: its /status has another form' }
    : { kind: 'read', status: found };
}

/** Undefined for the text of another program. */
function parseStatus(text: string): RunningStatus | undefined {
  try {
    const found: unknown = JSON.parse(text);
    return isStatus(found) ? found : undefined;
  } catch {
    return undefined;
  }
}

function isStatus(found: unknown): found is RunningStatus {
  if (!isRecord(found)) return false;
  const { version, uptimeSeconds, draining, degraded, tokens, throttles, alerts, verdict } = found;
  return (
    typeof version === 'string' &&
    typeof uptimeSeconds === 'number' &&
    typeof draining === 'boolean' &&
    isTextList(degraded) &&
    isListOf(tokens, isToken) &&
    isListOf(throttles, isThrottle) &&
    (alerts === undefined || isListOf(alerts, isAlert, 0)) &&
    (verdict === undefined || isVerdict(verdict))
  );
}

export function isVerdict(found: unknown): found is RunningVerdict {
  if (!isRecord(found)) return false;
  const { level, where, headline, detail, since, advice, other } = found;
  const texts = [level, where, headline, detail].every((member) => typeof member === 'string');
  return texts && [since, advice, other].every((member) => isNullOr(member, 'string'));
}

function isAlert({ name, severity, subject }: Record<string, unknown>): boolean {
  return typeof name === 'string' && typeof severity === 'string' && isNullOr(subject, 'string');
}

function isToken({ credential, status, validForSeconds, scope, lastFailure }: Record<string, unknown>): boolean {
  return (
    typeof credential === 'string' &&
    typeof status === 'string' &&
    isNullOr(validForSeconds, 'number') &&
    isNullOr(scope, 'string') &&
    (lastFailure === null || (isRecord(lastFailure) && typeof lastFailure.detail === 'string'))
  );
}

function isThrottle(throttle: Record<string, unknown>): boolean {
  const { route, mode, rate, pausedSeconds, queued, inFlight, inFlightLimit, learned } = throttle;
  return (
    [route, mode].every((member) => typeof member === 'string') &&
    [queued, inFlight].every((member) => typeof member === 'number') &&
    [rate, pausedSeconds, inFlightLimit].every((member) => isNullOr(member, 'number')) &&
    (learned === null ||
      (isRecord(learned) && isNullOr(learned.limit, 'number') && isNullOr(learned.windowSeconds, 'number'))) &&
    isListOf(throttle.refusalProposals, ({ setting }) => typeof setting === 'string', 0) &&
    isListOf(throttle.recentSignals, isSignal, 0)
  );
}

function isSignal({ at, status, pauseSeconds, stated }: Record<string, unknown>): boolean {
  return (
    typeof at === 'string' &&
    typeof status === 'number' &&
    isNullOr(pauseSeconds, 'number') &&
    typeof stated === 'boolean'
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}

function isListOf(value: unknown, matches: (entry: Record<string, unknown>) => boolean, minLength = 1): boolean {
  return Array.isArray(value) && value.length >= minLength && value.every((entry) => isRecord(entry) && matches(entry));
}

function isNullOr(value: unknown, type: 'number' | 'string'): boolean {
  return value === null || typeof value === type;
}
