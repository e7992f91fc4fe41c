/**
 * Decides whether a client may use the sidecar, before anything else is done for a request. Pure. Every web page in the machine's browser can
 * reach a proxy on loopback: a page shows in Origin or Sec-Fetch-Site (Fetch standard), DNS rebinding only in Host.
 */
import { SidecarError } from '../platform/errors.ts';
import { parseHostHeader, type HostPort } from '../platform/host-header.ts';
import { quoteForMessage } from '../platform/truncate.ts';
import {
  checkReferer,
  findHostConflict,
  readAbsoluteTarget,
  type AbsoluteFormOptions,
  type AbsoluteTarget,
} from './absolute-form.ts';
import { createHeadReader, type ReadRequestHead, type RequestHead } from './request-head.ts';

export interface GuardOptions extends AbsoluteFormOptions {
  /** Undefined on a `unix:` listener, where any valid Host passes. */
  readonly allowedHosts: readonly HostPort[] | undefined;
  readonly allowedOrigins: readonly string[];
  readonly requiredHeader: { readonly name: string; readonly value: string } | undefined;
}

export interface GuardedRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersion: string;
  readonly rawHeaders: readonly string[];
  readonly socket?: { readonly localPort?: number | undefined };
}

/** Each costs memory of its own beside its bytes. node:http rejects more than one above it, or drops them: see http-server.ts. */
export const MAX_HEADER_FIELDS = 200;

export class Guard {
  readonly #options: GuardOptions;
  /** Reads the head that `check` is given. */
  readonly readHead: ReadRequestHead;
  /** Most requests of a client have the same Host. */
  #lastAllowedHost: string | undefined;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.readHead = createHeadReader(options.requiredHeader?.name);
  }

  /** What an admitted request asks for, or the error that rejects it. @param head of the request. Default: it is read */
  check(request: GuardedRequest, head = this.readHead(request.rawHeaders)) {
    const { method = '', url = '', httpVersion } = request;
    const { requiredHeader } = this.#options;
    const absolute = url.startsWith('/')
      ? undefined
      : readAbsoluteTarget(this.#options, url, request.socket?.localPort);
    if (absolute instanceof SidecarError) return absolute;
    const error =
      checkMethodAndSize(method, request.rawHeaders) ??
      checkFraming(httpVersion, head) ??
      this.#checkHost(httpVersion, head, absolute) ??
      (head.mayComeFromPage ? this.#checkPage(request, head) : undefined);
    if (error !== undefined) return error;
    const corsOrigin = head.origins[0]?.toLowerCase();
    // An allowed page asks: the listener responds.
    const isPreflight = corsOrigin !== undefined && method === 'OPTIONS' && head.preflightMethods.length > 0;
    // A browser adds no header field of the page's own to a preflight.
    if (requiredHeader !== undefined && !isPreflight && !hasValue(head.required, requiredHeader.value))
      return createMissingHeaderError(requiredHeader.name);
    if (absolute === undefined) return { target: url, upstream: undefined, corsOrigin, isPreflight };
    const upstream = absolute.kind === 'upstream' ? absolute : undefined;
    return { target: absolute.path, upstream, corsOrigin, isPreflight };
  }

  #checkPage(request: GuardedRequest, head: RequestHead): SidecarError | undefined {
    if (isOwnUpgrade(request, head)) return undefined;
    const { url = '' } = request;
    const error = checkOrigin(this.#options, head);
    if (error !== undefined || this.#options.forwardProxy !== true || url.startsWith('/')) return error;
    return checkReferer(url, head.referers);
  }

  #checkHost(
    httpVersion: string,
    { hosts }: RequestHead,
    target: AbsoluteTarget | undefined,
  ): SidecarError | undefined {
    const namesUpstream = target?.kind === 'upstream';
    if (hosts.length === 1 && hosts[0] === this.#lastAllowedHost && !namesUpstream) return undefined;
    const { allowedHosts } = this.#options;
    const parsed = parseHostHeader(hosts);
    switch (parsed.kind) {
      case 'absent':
        return httpVersion === '1.0' || allowedHosts === undefined
          ? undefined
          : createInvalidHostError('no Host field');
      case 'invalid':
        return createInvalidHostError(parsed.fault);
      case 'valid':
        if (namesUpstream) return findHostConflict(target, parsed.value);
        if (allowedHosts !== undefined && !isAllowed(allowedHosts, parsed.hostPort))
          return createHostNotAllowedError(parsed.value);
        this.#lastAllowedHost = parsed.value;
        return undefined;
    }
  }
}

function isAllowed(allowed: readonly HostPort[], { host, port = 80 }: HostPort): boolean {
  return allowed.some((entry) => entry.host === host && (entry.port === undefined || entry.port === port));
}

/** Tunnels, echoes of credentials, and the methods of RTSP and ICE that node:http's parser accepts. */
const BLOCKED_METHODS = new Set(
  'CONNECT TRACE SOURCE ANNOUNCE DESCRIBE FLUSH GET_PARAMETER PAUSE PLAY RECORD REDIRECT SET_PARAMETER SETUP TEARDOWN'.split(
    ' ',
  ),
);

function checkMethodAndSize(method: string, rawHeaders: readonly string[]): SidecarError | undefined {
  if (rawHeaders.length > 2 * MAX_HEADER_FIELDS) {
    const limit = String(MAX_HEADER_FIELDS);
    return new SidecarError('HEADERS_TOO_LARGE', `the request has more than ${limit} header fields`);
  }
  if (!BLOCKED_METHODS.has(method)) return undefined;
  return new SidecarError('METHOD_NOT_ALLOWED', `${method} is not forwarded`);
}

/** node:http accepts framing that two recipients could read as two different bodies (RFC 9112 §6.1, §11.2). */
function checkFraming(
  httpVersion: string,
  { contentLengths: lengths, transferCodings: codings }: RequestHead,
): SidecarError | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return new SidecarError('BAD_REQUEST', 'the request is neither HTTP/1.1 nor HTTP/1.0');
  if (lengths.length + codings.length > 1)
    return new SidecarError('BAD_REQUEST', 'the length of the body is stated more than once');
  if (codings[0] === undefined) return undefined;
  if (codings[0].toLowerCase() !== 'chunked')
    return new SidecarError('BAD_REQUEST', 'the Transfer-Encoding is not supported: expected "chunked" alone');
  if (httpVersion === '1.1') return undefined;
  return new SidecarError('BAD_REQUEST', 'HTTP/1.0 has no Transfer-Encoding: expected a Content-Length');
}

function createInvalidHostError(fault: string): SidecarError {
  return new SidecarError('BAD_REQUEST', `the request has ${fault}: exactly one valid Host is expected`);
}

function createHostNotAllowedError(host: string): SidecarError {
  return new SidecarError(
    'HOST_NOT_ALLOWED',
    `the host ${quoteForMessage(host)} is not allowed; to allow it, add it to SIDECAR_ALLOWED_HOSTS`,
  );
}

const BROWSER_FIELD = /^sec-fetch-/i;

/**
 * A WebSocket upgrade of a program that names the listener as its origin, as Python's websocket-client does. A browser would do so for a
 * page that came through the sidecar. It sends Sec-Fetch-*, which some browsers leave out here, and a User-Agent that no page can change.
 */
function isOwnUpgrade({ method, url, httpVersion, rawHeaders }: GuardedRequest, head: RequestHead): boolean {
  const valuesOf = (name: string): string[] =>
    rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
  const [origin = '', ...others] = head.origins;
  const authority = /^https?:\/\/(.+)$/i.exec(origin)?.[1]?.toLowerCase();
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    url?.startsWith('/') === true &&
    valuesOf('upgrade').join().toLowerCase() === 'websocket' &&
    others.length === 0 &&
    authority === head.hosts[0]?.toLowerCase() &&
    !rawHeaders.some((field, at) => at % 2 === 0 && BROWSER_FIELD.test(field)) &&
    !valuesOf('user-agent').some((program) => program.startsWith('Mozilla/'))
  );
}

function checkOrigin(
  { allowedOrigins }: GuardOptions,
  { origins, fetchSites: sites }: RequestHead,
): SidecarError | undefined {
  if (origins.length + sites.length === 0) return undefined;
  const foreign = origins.find((origin) => !allowedOrigins.includes(origin.toLowerCase()));
  if (foreign !== undefined || origins.length > 1)
    return new SidecarError(
      'ORIGIN_NOT_ALLOWED',
      `requests of web pages from ${quoteForMessage(foreign ?? origins.join(', '))} are not allowed; ` +
        'to allow them, add the origin to SIDECAR_ALLOWED_ORIGINS',
    );
  if (origins.length === 1 || sites.every((site) => site.toLowerCase() === 'none')) return undefined;
  return new SidecarError(
    'ORIGIN_NOT_ALLOWED',
    `requests that a web page starts (Sec-Fetch-Site: ${quoteForMessage(sites.join(', '))}) are not allowed; ` +
      'to allow a page, add its origin to SIDECAR_ALLOWED_ORIGINS',
  );
}

/** Compares without stopping at the first difference; only the length may show in the time it takes. */
function hasValue([given, ...others]: readonly string[], value: string): boolean {
  if (given === undefined || others.length > 0) return false;
  let difference = given.length ^ value.length;
  for (let index = 0; index < value.length; index++) difference |= value.charCodeAt(index) ^ given.charCodeAt(index);
  return difference === 0;
}

function createMissingHeaderError(name: string): SidecarError {
  return new SidecarError(
    'REQUEST_NOT_ALLOWED',
    `the header field ${name} is missing or wrong: every request must have it (listen.requiredHeader)`,
  );
}
