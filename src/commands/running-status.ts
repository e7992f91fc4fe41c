/** Reads what a running sidecar says of itself. Another program may respond: what is used is checked. */
import type { Status } from '../admin/status/status.ts';
import type { ListenAddress } from '../platform/host-header.ts';
import { parseJsonObject } from '../token/endpoint/json-object.ts';
import { requestAdminPort } from './admin-port.ts';

const RESPONSE_TIMEOUT_MS = 2000;
const MAX_SHOWN_LENGTH = 300;
const FOREIGN = 'what responds is not a bearer-sidecar: its /status has another form';

/** What responded, or why that is no sidecar's. */
export type AdminReading =
  | { readonly kind: 'read'; readonly text: string }
  | { readonly kind: 'unavailable'; readonly why: string };

/** Never rejects. @param stop aborts the request */
export async function readAdminText(
  address: ListenAddress,
  path: '/status' | '/status.txt',
  stop: AbortSignal,
): Promise<AdminReading> {
  const until = AbortSignal.any([stop, AbortSignal.timeout(RESPONSE_TIMEOUT_MS)]);
  const { status, text } = await requestAdminPort(address, path, until);
  if (status === undefined) return { kind: 'unavailable', why: text };
  if (status !== 200)
    return { kind: 'unavailable', why: `the admin port responds with ${status}: ${text.slice(0, MAX_SHOWN_LENGTH)}` };
  const isOwn = path === '/status' ? parseStatus(text) !== undefined : text.startsWith('bearer-sidecar ');
  return isOwn ? { kind: 'read', text } : { kind: 'unavailable', why: FOREIGN };
}

/** What `reload` reads of /status; each member may be missing or of another type. */
export interface RunningStatus {
  readonly pid?: unknown;
  readonly configuration?: Partial<NonNullable<Status['configuration']>> | null;
}

/** Undefined for the text of another program. */
export function parseStatus(text: string): RunningStatus | undefined {
  const found = parseJsonObject(text);
  const isOwn = typeof found?.version === 'string' && isFilledList(found.tokens) && isFilledList(found.throttles);
  return isOwn ? found : undefined;
}

function isFilledList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}
