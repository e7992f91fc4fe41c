/**
 * `GET /log-level` shows, `PUT /log-level` changes the log level; the body is the level, `?for=10m` limits the time. Only for local
 * peers; a browser may not change it. The caller checks that `admin.allowLogLevel` is set.
 */
import type { IncomingMessage } from 'node:http';
import { createJsonResponse, createProblemResponse } from '../admin-response.ts';
import type { AdminResponse } from '../admin-response.ts';
import { LOG_LEVELS } from '../../telemetry/events.ts';
import { hasAnyHeader } from '../guard.ts';
import type { LogLevelSwitch } from './log-level-switch.ts';

export const LOG_LEVEL_PATH = '/log-level';

/** Header fields that a browser always adds to a PUT. Node's fetch sends neither. */
const BROWSER_HEADERS: ReadonlySet<string> = new Set(['origin', 'sec-fetch-site']);

/** A level, with spaces or line ends around it. */
const MAX_BODY_BYTES = 64;

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };
const MAX_DURATION_MS = 24 * 3_600_000;

/** An error response closes the connection, since the request body is not read. */
const CLOSE_CONNECTION = { Connection: 'close' };

/** Handles a request that has passed the guard of the port. */
export async function handleLogLevel(
  request: IncomingMessage,
  isLocal: boolean,
  levels: LogLevelSwitch,
): Promise<AdminResponse> {
  if (!isLocal)
    return createProblemResponse(403, 'REQUEST_NOT_ALLOWED', 'Only available from this machine.', CLOSE_CONNECTION);
  if (request.method === 'GET' || request.method === 'HEAD') return createJsonResponse(200, levels.state());
  if (request.method !== 'PUT')
    return createProblemResponse(405, 'METHOD_NOT_ALLOWED', 'Use GET or PUT.', {
      ...CLOSE_CONNECTION,
      Allow: 'GET, HEAD, PUT',
    });
  if (hasAnyHeader(request.rawHeaders, BROWSER_HEADERS))
    return createProblemResponse(
      403,
      'REQUEST_NOT_ALLOWED',
      'A browser may not change the log level.',
      CLOSE_CONNECTION,
    );
  const duration = readDuration(request.url ?? '');
  if (duration.kind === 'refused') return createProblemResponse(400, 'BAD_REQUEST', duration.detail, CLOSE_CONNECTION);
  const name = (await readBody(request))?.trim();
  const level = LOG_LEVELS.find((known) => known === name);
  if (level === undefined)
    return createProblemResponse(
      400,
      'BAD_REQUEST',
      `The body must be one of ${LOG_LEVELS.join(', ')}.`,
      CLOSE_CONNECTION,
    );
  levels.change(level, duration.forMs);
  return createJsonResponse(200, levels.state());
}

type DurationResult =
  { readonly kind: 'read'; readonly forMs: number | undefined } | { readonly kind: 'refused'; readonly detail: string };

function readDuration(target: string): DurationResult {
  const at = target.indexOf('?');
  const query = new URLSearchParams(at === -1 ? '' : target.slice(at + 1));
  const values = query.getAll('for');
  if (query.size !== values.length || values.length > 1)
    return { kind: 'refused', detail: 'The query must be empty or for=TIME.' };
  const [text] = values;
  if (text === undefined) return { kind: 'read', forMs: undefined };
  const [, amount, unit = ''] = /^([1-9]\d{0,5})([smh])$/.exec(text) ?? [];
  const forMs = Number(amount) * (UNITS_MS[unit] ?? NaN);
  if (forMs <= MAX_DURATION_MS) return { kind: 'read', forMs };
  return { kind: 'refused', detail: 'for must be a whole number with s, m or h, such as 10m, and at most 24 hours.' };
}

/** Undefined when the body is too long. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('latin1');
}
