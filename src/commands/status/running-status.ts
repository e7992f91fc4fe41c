/** Reads /status of a running sidecar. Another program, or another version, may respond: what is used is checked. */
import type { Status } from '../../admin/status/status.ts';
import type { ListenAddress } from '../../platform/host-header.ts';
import { parseJsonObject } from '../../token/endpoint/json-object.ts';
import { requestAdminPort } from '../admin-port.ts';

const RESPONSE_TIMEOUT_MS = 2000;
const MAX_SHOWN_LENGTH = 300;

/** The status, or why there is none. */
export type StatusReading =
  | { readonly kind: 'read'; readonly status: RunningStatus }
  | { readonly kind: 'unavailable'; readonly why: string };

/** An older sidecar states less. */
export type RunningStatus = Omit<
  Status,
  'pid' | 'configuration' | 'alerts' | 'verdict' | 'throttles' | 'recentCalls'
> & {
  readonly throttles: readonly (Omit<Status['throttle'], 'limits'> & Partial<Pick<Status['throttle'], 'limits'>>)[];
  readonly recentCalls?: unknown;
  readonly pid?: number | null;
  readonly alerts?: readonly RunningAlert[];
  readonly verdict?: RunningVerdict;
  readonly configuration?: Partial<Status['configuration'] & object> | null;
};

/** One of the last calls. */
type RunningCall = Pick<
  NonNullable<Status['recentCalls']>[number],
  'at' | 'method' | 'path' | 'status' | 'source' | 'reason' | 'durationSeconds' | 'requestId' | 'upstreamRequestId'
>;

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
export async function readRunningStatus(address: ListenAddress, stop: AbortSignal): Promise<StatusReading> {
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
  const found: unknown = parseJsonObject(text);
  return isStatus(found) ? found : undefined;
}

/** The type of a member, with `?` also null, or a test of it. */
type MemberTest = 'string' | 'number' | 'boolean' | 'string?' | 'number?' | ((member: unknown) => boolean);
type Members = Readonly<Record<string, MemberTest>>;

/** Whether a JSON value is an object with these members. */
export function hasMembers(value: unknown, members: Members): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.entries(members).every(([name, test]) => {
      const member = (value as Record<string, unknown>)[name];
      if (typeof test === 'function') return test(member);
      return typeof member === test.replace('?', '') || (member === null && test.endsWith('?'));
    })
  );
}

function listOf(members: Members, minLength = 0) {
  return (list: unknown): boolean =>
    Array.isArray(list) && list.length >= minLength && list.every((entry) => hasMembers(entry, members));
}

const VERDICT: Members = {
  ...{ level: 'string', where: 'string', headline: 'string', detail: 'string' },
  ...{ since: 'string?', advice: 'string?', other: 'string?' },
};
const TOKEN: Members = {
  ...{ credential: 'string', status: 'string', validForSeconds: 'number?', scope: 'string?' },
  lastFailure: (failure) => failure === null || hasMembers(failure, { detail: 'string' }),
};
const LIMIT_LIST = listOf({
  ...{ name: 'string', calls: 'number', per: 'string', used: 'number' },
  ...{ usedUpAt: 'string?', resetsAt: 'string?' },
});
const THROTTLE: Members = {
  ...{ route: 'string', mode: 'string', queued: 'number', inFlight: 'number' },
  ...{ rate: 'number?', pausedSeconds: 'number?', inFlightLimit: 'number?' },
  learned: (learned) => learned === null || hasMembers(learned, { limit: 'number?', windowSeconds: 'number?' }),
  limits: (limits) => limits === undefined || LIMIT_LIST(limits),
  refusalProposals: listOf({ setting: 'string' }),
  recentSignals: listOf({ at: 'string', status: 'number', pauseSeconds: 'number?', stated: 'boolean' }),
};
const CALL: Members = {
  ...{ at: 'string', method: 'string', path: 'string', status: 'number', source: 'string', reason: 'string?' },
  ...{ durationSeconds: 'number', requestId: 'string', upstreamRequestId: 'string?' },
};
const ALERT_LIST = listOf({ name: 'string', severity: 'string', subject: 'string?' });
const STATUS: Members = {
  ...{ version: 'string', uptimeSeconds: 'number', draining: 'boolean' },
  degraded: (list) => Array.isArray(list) && list.every((entry) => typeof entry === 'string'),
  tokens: listOf(TOKEN, 1),
  throttles: listOf(THROTTLE, 1),
  alerts: (list) => list === undefined || ALERT_LIST(list),
  verdict: (verdict) => verdict === undefined || isVerdict(verdict),
};

function isStatus(found: unknown): found is RunningStatus {
  return hasMembers(found, STATUS);
}

/** The last calls, newest first; empty when they are not kept, or an older sidecar states less of them. */
export function listCalls({ recentCalls }: RunningStatus): readonly RunningCall[] {
  return Array.isArray(recentCalls) ? recentCalls.filter((call): call is RunningCall => hasMembers(call, CALL)) : [];
}

export function isVerdict(found: unknown): found is RunningVerdict {
  return hasMembers(found, VERDICT);
}
