/**
 * A simulated Sales API on loopback: limits the rate, checks the bearer token and its scope, validates input, returns JSON.
 * Paths, payloads and error bodies are invented, since the real ones are unknown; every body has `"simulated": true`.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import { systemClock } from '../platform/clock.ts';
import { checkBearer, rejectScope } from './bearer-check.ts';
import { HiddenLimit } from './hidden-limit.ts';
import type { HiddenLimitOptions } from './hidden-limit.ts';
import { jsonResponse, pathOf, problemResponse, readBody, serveOnLoopback } from './loopback-server.ts';
import type { LoopbackServer, SandboxResponse } from './loopback-server.ts';
import { SalesService } from './sales-service.ts';
import { streamSalesEvents } from './sales-events.ts';
import { checkPolicyRequest, checkQuoteRequest, parseJsonObject } from './sales-input.ts';
import type { FieldFault } from './sales-input.ts';
import { POLICIES_SCOPE, QUOTES_SCOPE } from './token-request.ts';
import type { TokenAuthority } from './token-issuer.ts';

export interface SalesApiOptions {
  /** Verifies and revokes tokens. */
  readonly tokens: TokenAuthority;
  /** The required audience of a token. */
  readonly audience: string;
  /** The hidden rate limit. Default: 5 permits per second, 5 saved up, `Retry-After` on a 429. */
  readonly limit?: HiddenLimitOptions;
  /** Interval at which all tokens are revoked. Default: never. */
  readonly revokeEveryMs?: number;
  /** Most quotes and most policies that are kept. Default 1000. */
  readonly recordsMax?: number;
  /** Default: the system clock. */
  readonly clock?: Clock;
}

export interface SalesApi extends LoopbackServer {
  /** Base of all resources, without a trailing slash: `http://127.0.0.1:<port>/v1`. */
  readonly baseUrl: URL;
}

/** The default limit: a shell loop reaches it, a first try does not. */
export const DEFAULT_LIMIT: HiddenLimitOptions = { permitsPerSecond: 5, burst: 5, hint: 'retry-after' };

const DEFAULT_RECORDS_MAX = 1000;
const BODY_LIMIT_BYTES = 64 * 1024;

interface SalesApiContext {
  readonly service: SalesService;
  readonly clock: Clock;
}

interface SalesApiCall {
  readonly request: IncomingMessage;
  readonly gone: AbortSignal;
  /** The last path segment, for a route with a record id. */
  readonly id: string;
}

interface SalesApiRoute {
  readonly method: 'GET' | 'POST';
  readonly path: RegExp;
  /** Undefined: any valid token. */
  readonly scope: string | undefined;
  readonly serve: (context: SalesApiContext, call: SalesApiCall) => SandboxResponse | Promise<SandboxResponse>;
}

const ROUTES: readonly SalesApiRoute[] = [
  { method: 'POST', path: /^\/v1\/quotes-requests$/, scope: QUOTES_SCOPE, serve: createQuote },
  { method: 'POST', path: /^\/v1\/policies$/, scope: POLICIES_SCOPE, serve: createPolicy },
  { method: 'GET', path: /^\/v1\/policies\/([^/]+)$/, scope: POLICIES_SCOPE, serve: getPolicy },
  { method: 'GET', path: /^\/v1\/events$/, scope: undefined, serve: streamEvents },
];

/**
 * Starts it on 127.0.0.1, on a free port.
 * @throws the listen error of node:net
 */
export async function startSalesApi(options: SalesApiOptions): Promise<SalesApi> {
  const { tokens, audience, clock = systemClock, limit = DEFAULT_LIMIT, recordsMax = DEFAULT_RECORDS_MAX } = options;
  const context: SalesApiContext = { service: new SalesService(recordsMax), clock };
  const hiddenLimit = new HiddenLimit(clock, limit);

  const server = await serveOnLoopback(async (request, gone) => {
    const { isAllowed, headers } = hiddenLimit.take();
    const reply = isAllowed
      ? await handleRequest(request, gone, context, checkBearer(request, tokens, audience))
      : problemResponse(429, 'Too many calls.');
    return { ...reply, headers: { ...reply.headers, ...headers } };
  });
  const stopRevoking = startRevoking(options.revokeEveryMs, clock, tokens);
  return {
    ...server,
    baseUrl: new URL('/v1', server.url),
    close: () => {
      stopRevoking();
      return server.close();
    },
  };
}

async function handleRequest(
  request: IncomingMessage,
  gone: AbortSignal,
  context: SalesApiContext,
  bearer: ReturnType<typeof checkBearer>,
): Promise<SandboxResponse> {
  if (bearer.kind === 'rejected') return bearer.reply;
  const path = pathOf(request);
  const matches = ROUTES.filter((route) => route.path.test(path));
  const route = matches.find(({ method }) => method === request.method);
  if (matches.length === 0) return problemResponse(404, 'There is no such resource.');
  if (route === undefined) {
    const allow = matches.map(({ method }) => method).join(', ');
    return problemResponse(405, `This resource takes ${allow} only.`, {}, { allow });
  }
  const id = route.path.exec(path)?.[1] ?? '';
  return rejectScope(bearer.scopes, route.scope) ?? (await route.serve(context, { request, gone, id }));
}

async function createQuote({ service }: SalesApiContext, { request }: SalesApiCall): Promise<SandboxResponse> {
  const input = await readInput(request);
  if (input.kind === 'rejected') return input.reply;
  const checked = checkQuoteRequest(input.value);
  return checked.kind === 'faulty'
    ? rejectInput(checked.faults)
    : jsonResponse(201, service.createQuote(checked.value));
}

async function createPolicy({ service }: SalesApiContext, { request }: SalesApiCall): Promise<SandboxResponse> {
  const input = await readInput(request);
  if (input.kind === 'rejected') return input.reply;
  const checked = checkPolicyRequest(input.value);
  if (checked.kind === 'faulty') return rejectInput(checked.faults);
  const decision = service.issuePolicy(checked.value);
  if (decision.kind === 'rejected') return rejectInput([decision.fault]);
  // Absolute, as many APIs send it: the sidecar must rewrite it.
  const location = `http://${request.headers.host ?? ''}/v1/policies/${decision.policy.policyId}`;
  return jsonResponse(201, decision.policy, { location });
}

function getPolicy({ service }: SalesApiContext, { id }: SalesApiCall): SandboxResponse {
  const policy = service.policy(id);
  return policy === undefined ? problemResponse(404, 'There is no such policy.') : jsonResponse(200, policy);
}

function streamEvents({ clock }: SalesApiContext, { gone }: SalesApiCall): SandboxResponse {
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' };
  return { status: 200, headers, body: streamSalesEvents(clock, gone) };
}

type RequestInput =
  | { readonly kind: 'read'; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: 'rejected'; readonly reply: SandboxResponse };

async function readInput(request: IncomingMessage): Promise<RequestInput> {
  if (!/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? ''))
    return { kind: 'rejected', reply: problemResponse(415, 'Content-Type application/json is expected.') };
  const body = await readBody(request, BODY_LIMIT_BYTES);
  if (body.kind === 'too-large')
    return { kind: 'rejected', reply: problemResponse(413, 'The body is too large.', {}, { connection: 'close' }) };
  const value = parseJsonObject(body.bytes);
  if (value === undefined) return { kind: 'rejected', reply: problemResponse(400, 'The body is not a JSON object.') };
  return { kind: 'read', value };
}

function rejectInput(faults: readonly FieldFault[]): SandboxResponse {
  const names = faults.map(({ field }) => field).join(', ');
  return problemResponse(422, `Fields are missing or wrong: ${names}.`, { errors: faults });
}

/** Returns a function that stops it. */
function startRevoking(intervalMs: number | undefined, clock: Clock, tokens: TokenAuthority): () => void {
  if (intervalMs === undefined) return () => undefined;
  let cancel = clock.after(intervalMs, revoke);
  function revoke(): void {
    tokens.revokeAll();
    cancel = clock.after(intervalMs ?? 0, revoke);
  }
  return () => {
    cancel();
  };
}
