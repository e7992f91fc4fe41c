/**
 * A simulated Sales API on loopback: limits the rate, checks the bearer token, its role and its scope, validates input, returns JSON.
 * Paths, payloads and error bodies are invented, since the real ones are unknown; every body has `"simulated": true`.
 */
import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { sleep, type Clock } from '../platform/clock.ts';
import { parseJsonObject, type JsonFields } from '../token/endpoint/json-object.ts';
import type { ServerIdentity } from './certificate.ts';
import { createLimiter } from './limits.ts';
import {
  jsonResponse,
  pathOf,
  problemResponse,
  readBody,
  RequestRejection,
  serveOnLoopback,
  toReply,
} from './loopback-server.ts';
import type { SandboxResponse } from './loopback-server.ts';
import {
  checkRecordId,
  createInputRejection,
  readPolicyRequest,
  readQuoteRequest,
  rejectFaults,
} from './sales-input.ts';
import type { PolicyRequest, QuoteRequest } from './sales-input.ts';
import type { TokenClaims, TokenIssuer } from './token-issuer.ts';
import { drawFate, POLICIES_SCOPE, QUOTES_SCOPE, type SandboxScenario } from './scenario.ts';

export interface SalesApiOptions {
  readonly identity: ServerIdentity;
  readonly tokens: TokenIssuer;
  readonly audience: string;
  readonly clock: Clock;
  readonly scenario: SandboxScenario;
}

export type SalesApi = Awaited<ReturnType<typeof startSalesApi>>;

const BASE_PATH = '/v1';
const BODY_LIMIT_BYTES = 64 * 1024;

interface SalesApiCall {
  readonly service: SalesService;
  readonly clock: Clock;
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
  readonly serve: (call: SalesApiCall) => SandboxResponse | Promise<SandboxResponse>;
}

const ROUTES: readonly SalesApiRoute[] = [
  { method: 'POST', path: /^\/v1\/quotes-requests$/, scope: QUOTES_SCOPE, serve: createQuote },
  { method: 'POST', path: /^\/v1\/policies$/, scope: POLICIES_SCOPE, serve: createPolicy },
  { method: 'GET', path: /^\/v1\/policies\/([^/]+)$/, scope: POLICIES_SCOPE, serve: getPolicy },
  { method: 'GET', path: /^\/v1\/events$/, scope: undefined, serve: streamEvents },
];

/** @throws the listen error of node:net */
export async function startSalesApi(options: SalesApiOptions) {
  const { identity, clock, scenario } = options;
  const limiter = createLimiter(scenario.limits);
  const serve = createService(options);
  let calls = 0;

  const server = await serveOnLoopback(identity, async (request, gone) => {
    const { fault, delayMs } = drawFate(scenario, calls++);
    const path = pathOf(request).slice(BASE_PATH.length);
    const { refusal, headers, release } = limiter(clock.wallNow(), request.method ?? '', path);
    if (refusal !== undefined) return problemResponse(refusal, 'Too many calls.', {}, headers);
    gone.addEventListener('abort', release);
    if (delayMs > 0) await sleep(clock, delayMs, gone);
    if (fault?.status !== undefined) return problemResponse(fault.status, 'The scenario has this fault.', {}, headers);
    const reply = await serve(request, gone).catch(toReply);
    if (fault?.breaks === 'reset') request.socket.destroy();
    const isCut = fault?.breaks === 'cut' && typeof reply.body === 'string';
    return { ...reply, headers: { ...reply.headers, ...headers }, body: isCut ? cutInHalf(reply.body) : reply.body };
  });
  return { ...server, baseUrl: new URL(BASE_PATH, server.url) };
}

function createService({ tokens, audience, clock }: SalesApiOptions) {
  const service = new SalesService();
  return async (request: IncomingMessage, gone: AbortSignal): Promise<SandboxResponse> => {
    const { scope, roles } = checkBearer(request, tokens, audience);
    const path = pathOf(request);
    const matches = ROUTES.filter((route) => route.path.test(path));
    const route = matches.find(({ method }) => method === request.method);
    if (matches.length === 0) return problemResponse(404, 'There is no such resource.');
    if (route === undefined) {
      const allow = matches.map(({ method }) => method).join(', ');
      return problemResponse(405, `This resource takes ${allow} only.`, {}, { allow });
    }
    if (route.method === 'POST' && !roles.includes('seller'))
      return problemResponse(403, `The role ${roles.join(', ')} of this client may read only.`);
    if (route.scope !== undefined && !scope.split(' ').includes(route.scope)) return rejectScope(route.scope);
    const parameters = [...new URL(request.url ?? '', audience).searchParams.keys()];
    rejectFaults(parameters.map((name) => ({ field: `?${name}`, message: 'is not known' })));
    return route.serve({ service, clock, request, gone, id: route.path.exec(path)?.[1] ?? '' });
  };
}

/** The half that is sent before the connection breaks off. */
async function* cutInHalf(body: string): AsyncGenerator<string> {
  yield body.slice(0, body.length / 2);
  await setImmediate();
  throw new Error('the scenario cuts this response');
}

/** The claims of the token; checks it and its audience (RFC 6750 §3.1). @throws RequestRejection */
function checkBearer(request: IncomingMessage, tokens: TokenIssuer, audience: string): TokenClaims {
  const authorization = request.headersDistinct.authorization ?? [];
  if (authorization.length > 1)
    throw createBearerRejection(400, 'invalid_request', 'The request carries more than one access token.');
  const [, token] = /^bearer +(\S+)$/i.exec(authorization[0] ?? '') ?? [];
  // Without a token the challenge has the scheme only, no error code.
  if (token === undefined)
    throw new RequestRejection(problemResponse(401, 'A bearer token is expected.', {}, formatChallenge('')));
  const claims = tokens.verify(token);
  if (typeof claims === 'string') throw createBearerRejection(401, 'invalid_token', claims);
  if (claims.aud !== audience)
    throw createBearerRejection(401, 'invalid_token', 'The access token is for another audience.');
  return claims;
}

function createBearerRejection(status: 400 | 401, error: string, detail: string): RequestRejection {
  const parameters = `, error="${error}", error_description="${detail}"`;
  return new RequestRejection(problemResponse(status, detail, {}, formatChallenge(parameters)));
}

function rejectScope(needed: string): SandboxResponse {
  const detail = `The access token lacks the scope ${needed}.`;
  return problemResponse(403, detail, {}, formatChallenge(`, error="insufficient_scope", scope="${needed}"`));
}

function formatChallenge(parameters: string): Record<string, string> {
  return { 'www-authenticate': `Bearer realm="sandbox"${parameters}` };
}

async function createQuote({ service, request }: SalesApiCall): Promise<SandboxResponse> {
  return jsonResponse(201, service.createQuote(readQuoteRequest(await readInput(request))));
}

async function createPolicy({ service, request }: SalesApiCall): Promise<SandboxResponse> {
  const policy = service.issuePolicy(readPolicyRequest(await readInput(request)));
  // Absolute, as many APIs send it: the sidecar must rewrite it.
  const location = `https://${request.headers.host ?? ''}/v1/policies/${policy.policyId}`;
  return jsonResponse(201, policy, { location });
}

function getPolicy({ service, id }: SalesApiCall): SandboxResponse {
  rejectFaults(checkRecordId(id, 'policyId'));
  const policy = service.policy(id);
  return policy === undefined ? problemResponse(404, 'There is no such policy.') : jsonResponse(200, policy);
}

function streamEvents({ clock, gone }: SalesApiCall): SandboxResponse {
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' };
  return { status: 200, headers, body: streamSalesEvents(clock, gone) };
}

const EVENTS = ['received', 'priced', 'ready'] as const;
const EVENT_INTERVAL_MS = 300;

/** Server-sent events (WHATWG HTML), to try streaming through the sidecar; ends early when `gone` is aborted. */
async function* streamSalesEvents(clock: Clock, gone: AbortSignal): AsyncGenerator<string> {
  for (const [index, status] of EVENTS.entries()) {
    if (index > 0) await sleep(clock, EVENT_INTERVAL_MS, gone);
    if (gone.aborted) return;
    const data = JSON.stringify({ status, simulated: true });
    yield `id: ${(index + 1).toString()}\nevent: quote-status\ndata: ${data}\n\n`;
  }
}

async function readInput(request: IncomingMessage): Promise<JsonFields> {
  if (!/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? ''))
    throw new RequestRejection(problemResponse(415, 'Content-Type application/json is expected.'));
  const bytes = await readBody(request, BODY_LIMIT_BYTES);
  if (bytes === undefined)
    throw new RequestRejection(problemResponse(413, 'The body is too large.', {}, { connection: 'close' }));
  const value = isUtf8(bytes) ? parseJsonObject(bytes.toString()) : undefined;
  if (value === undefined) throw new RequestRejection(problemResponse(400, 'The body is not a JSON object.'));
  return value;
}

interface Quote {
  readonly quoteRequestId: string;
  readonly premium: { readonly amount: number; readonly currency: 'EUR' };
  readonly simulated: true;
}

interface Policy extends Quote {
  readonly policyId: string;
  readonly status: 'issued';
}

const CENTS_PER_TRAVELLER_DAY = 349;

/** The simulated insurer. All data is invented. */
export class SalesService {
  readonly #quotes = new Map<string, Quote>();
  readonly #policies = new Map<string, Policy>();

  createQuote({ days, travellers }: QuoteRequest): Quote {
    const amount = (days * travellers * CENTS_PER_TRAVELLER_DAY) / 100;
    const quote: Quote = { quoteRequestId: randomUUID(), premium: { amount, currency: 'EUR' }, simulated: true };
    addRecord(this.#quotes, quote.quoteRequestId, quote);
    return quote;
  }

  issuePolicy({ quoteRequestId }: PolicyRequest): Policy {
    const quote = this.#quotes.get(quoteRequestId);
    if (quote === undefined)
      throw createInputRejection([{ field: 'quoteRequestId', message: 'must name a quote request made before' }]);
    const { premium } = quote;
    const policy: Policy = { policyId: randomUUID(), quoteRequestId, status: 'issued', premium, simulated: true };
    addRecord(this.#policies, policy.policyId, policy);
    return policy;
  }

  policy(policyId: string): Policy | undefined {
    return this.#policies.get(policyId);
  }
}

const MAX_RECORDS = 1000;

/** Adds a record, and drops the oldest one beyond the bound: a Map keeps the order of insertion. */
function addRecord<T>(records: Map<string, T>, id: string, record: T): void {
  records.set(id, record);
  const [oldest = id] = records.keys();
  if (records.size > MAX_RECORDS) records.delete(oldest);
}
