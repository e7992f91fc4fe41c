/**
 * `GET /log-level` tells, `PUT /log-level` changes the level of the log; the body is the level and nothing else, `?for=10m` takes the
 * change back later. Whoever asks must be on this machine, and whoever changes no browser; that it was opted for is the caller's word.
 */
import type { IncomingMessage } from 'node:http';
import { createJsonResponse, createProblemResponse } from '../admin-response.ts';
import type { AdminResponse } from '../admin-response.ts';
import { LOG_LEVELS } from './log-level-switch.ts';
import type { LogLevelSwitch } from './log-level-switch.ts';

/** Where it is asked. */
export const LOG_LEVEL_PATH = '/log-level';

/** Fields that a browser adds to a PUT by itself, and that no script of a page can leave out. Node's own fetch sends neither. */
const BROWSER_HEADERS: ReadonlySet<string> = new Set(['origin', 'sec-fetch-site']);

/** The longest name of a level, blanks and line ends around it. */
const MAX_BODY_BYTES = 64;

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };
const MAX_DURATION_MS = 24 * 3_600_000;

/** The connection goes with a refusal: its request may have a body, and nobody is going to read it. */
const CLOSE_CONNECTION = { Connection: 'close' };

/** Answers a request that has passed the guard of the port. */
export async function handleLogLevel(
  request: IncomingMessage,
  isLocal: boolean,
  levels: LogLevelSwitch,
): Promise<AdminResponse> {
  if (!isLocal)
    return createProblemResponse(
      403,
      'REQUEST_NOT_ALLOWED',
      'This may be asked from this machine only.',
      CLOSE_CONNECTION,
    );
  if (request.method === 'GET' || request.method === 'HEAD') return createJsonResponse(200, levels.state());
  if (request.method !== 'PUT')
    return createProblemResponse(405, 'METHOD_NOT_ALLOWED', 'GET or PUT is expected.', {
      ...CLOSE_CONNECTION,
      Allow: 'GET, HEAD, PUT',
    });
  const isBrowser = request.rawHeaders.some((name, at) => at % 2 === 0 && BROWSER_HEADERS.has(name.toLowerCase()));
  if (isBrowser)
    return createProblemResponse(
      403,
      'REQUEST_NOT_ALLOWED',
      'A browser may not change the log level.',
      CLOSE_CONNECTION,
    );
  const spell = readDuration(request.url ?? '');
  if (spell.kind === 'refused') return createProblemResponse(400, 'BAD_REQUEST', spell.detail, CLOSE_CONNECTION);
  const name = (await readBody(request))?.trim();
  const level = LOG_LEVELS.find((known) => known === name);
  if (level === undefined)
    return createProblemResponse(
      400,
      'BAD_REQUEST',
      `The body is to be one of ${LOG_LEVELS.join(', ')}, and nothing else.`,
      CLOSE_CONNECTION,
    );
  levels.change(level, spell.forMs);
  return createJsonResponse(200, levels.state());
}

type DurationResult =
  { readonly kind: 'read'; readonly forMs: number | undefined } | { readonly kind: 'refused'; readonly detail: string };

function readDuration(target: string): DurationResult {
  const at = target.indexOf('?');
  const query = new URLSearchParams(at === -1 ? '' : target.slice(at + 1));
  const values = query.getAll('for');
  if (query.size !== values.length || values.length > 1)
    return { kind: 'refused', detail: 'The query is to be for=TIME, once, or nothing.' };
  const [text] = values;
  if (text === undefined) return { kind: 'read', forMs: undefined };
  const [, amount, unit = ''] = /^([1-9]\d{0,5})([smh])$/.exec(text) ?? [];
  const forMs = Number(amount) * (UNITS_MS[unit] ?? NaN);
  if (forMs <= MAX_DURATION_MS) return { kind: 'read', forMs };
  return { kind: 'refused', detail: 'for is to be a whole number with s, m or h, such as 10m, and 24 hours at most.' };
}

/** Undefined when it is too long. */
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
