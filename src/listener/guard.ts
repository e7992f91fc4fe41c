/**
 * Who may speak to the sidecar, decided before anything else. Pure.
 * A proxy that adds credentials on loopback is reachable by every web page in the machine's browser: a page betrays
 * itself by its Origin or Sec-Fetch-Site field (Fetch standard), DNS rebinding only by its Host. Names are counted in
 * the raw fields, since parsed ones hide repetitions (RFC 9112 §3.2).
 */
import { SidecarError } from '../platform/errors.ts';
import { parseHostPort, quoteForMessage, parseHostHeader, type HostPort } from '../platform/host-header.ts';

export interface AllowedProxyHost {
  readonly host: string;
  readonly port: number | undefined;
}

export interface GuardOptions {
  /** Undefined on a `unix:` listener, where any valid Host passes. */
  readonly allowedHosts: readonly AllowedProxyHost[] | undefined;
  readonly allowedOrigins: readonly string[];
  readonly requiredHeader: { readonly name: string; readonly value: string } | undefined;
}

/** What the guard looks at. */
export interface GuardedHead {
  readonly method: string;
  readonly target: string;
  readonly httpVersion: string;
  /** Flat list [name, value, …]. */
  readonly rawHeaders: readonly string[];
}

export type ProxyGuardDecision =
  | {
      readonly kind: 'pass';
      /** Origin-form target. */
      readonly target: string;
      readonly corsOrigin: string | undefined;
      /** A CORS preflight of an allowed page: answered here. */
      readonly isPreflight: boolean;
    }
  | { readonly kind: 'refused'; readonly error: SidecarError };

/** Never throws. */
export function guardRequest(options: GuardOptions, head: GuardedHead): ProxyGuardDecision {
  const fields = new HeaderView(head.rawHeaders);
  const target = toOriginForm(options, head.target);
  const refusal =
    (target instanceof SidecarError ? target : undefined) ??
    checkMethod(head.method) ??
    checkFraming(head, fields) ??
    checkHost(options, head, fields) ??
    checkOrigin(options, fields);
  if (refusal !== undefined) return { kind: 'refused', error: refusal };
  const corsOrigin = fields.getAll('origin')[0]?.toLowerCase();
  const isPreflight =
    corsOrigin !== undefined && head.method === 'OPTIONS' && fields.getAll('access-control-request-method').length > 0;
  // A browser puts no field of the page's own into a preflight.
  const secretRefusal = isPreflight ? undefined : checkRequiredHeader(options, fields);
  if (secretRefusal !== undefined) return { kind: 'refused', error: secretRefusal };
  return { kind: 'pass', target: target as string, corsOrigin, isPreflight };
}

const NO_VALUES: readonly string[] = [];

/** All values of a few fields, by lower-case name. */
class HeaderView {
  readonly #rawHeaders: readonly string[];

  constructor(rawFields: readonly string[]) {
    this.#rawHeaders = rawFields;
  }

  getAll(name: string): readonly string[] {
    let values: string[] | undefined;
    for (let at = 0; at + 1 < this.#rawHeaders.length; at += 2) {
      const candidate = this.#rawHeaders[at] ?? '';
      if (candidate.length === name.length && candidate.toLowerCase() === name) {
        const value = this.#rawHeaders[at + 1] ?? '';
        if (values === undefined) values = [value];
        else values.push(value);
      }
    }
    return values ?? NO_VALUES;
  }
}

/** Clients mostly come with the same Host again. */
const lastAllowedHost = new WeakMap<GuardOptions, string>();

function isAllowed(allowed: readonly AllowedProxyHost[], { host, port = 80 }: HostPort): boolean {
  return allowed.some((entry) => entry.host === host && (entry.port === undefined || entry.port === port));
}

function toOriginForm(options: GuardOptions, target: string): string | SidecarError {
  if (target.startsWith('/')) return target;
  const [, authority, rest] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(target) ?? [];
  if (authority === undefined || rest === undefined) {
    return new SidecarError('BAD_REQUEST', 'the request target is neither a path nor an http: URL of an allowed host');
  }
  if (options.allowedHosts !== undefined) {
    const hostPort = parseHostPort(authority);
    if (hostPort === undefined)
      return new SidecarError(
        'BAD_REQUEST',
        `the request target has the invalid authority ${quoteForMessage(authority)}`,
      );
    if (!isAllowed(options.allowedHosts, hostPort)) return createHostNotAllowedError(authority);
  }
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Tunnels, echoes of credentials, and what node:http's parser knows of RTSP and ICE. */
const BLOCKED_METHODS = new Set(
  'CONNECT TRACE SOURCE ANNOUNCE DESCRIBE FLUSH GET_PARAMETER PAUSE PLAY RECORD REDIRECT SET_PARAMETER SETUP TEARDOWN'.split(
    ' ',
  ),
);

function checkMethod(method: string): SidecarError | undefined {
  if (!BLOCKED_METHODS.has(method)) return undefined;
  return new SidecarError('METHOD_NOT_ALLOWED', `${method} is not forwarded`);
}

/** What node:http lets pass although two readers could see two different bodies in it (RFC 9112 §6.1, §11.2). */
function checkFraming(head: GuardedHead, fields: HeaderView): SidecarError | undefined {
  if (head.httpVersion !== '1.1' && head.httpVersion !== '1.0') {
    return new SidecarError('BAD_REQUEST', 'the request is neither HTTP/1.1 nor HTTP/1.0');
  }
  const lengths = fields.getAll('content-length');
  const codings = fields.getAll('transfer-encoding');
  if (lengths.length + codings.length > 1) {
    return new SidecarError('BAD_REQUEST', 'the length of the body is stated more than once');
  }
  if (codings[0] === undefined) return undefined;
  if (codings[0].toLowerCase() !== 'chunked') {
    return new SidecarError('BAD_REQUEST', 'the Transfer-Encoding is not understood: expected "chunked" alone');
  }
  if (head.httpVersion === '1.1') return undefined;
  return new SidecarError('BAD_REQUEST', 'HTTP/1.0 has no Transfer-Encoding: expected a Content-Length');
}

function checkHost(options: GuardOptions, head: GuardedHead, fields: HeaderView): SidecarError | undefined {
  const hosts = fields.getAll('host');
  if (hosts.length === 1 && lastAllowedHost.get(options) === hosts[0]) return undefined;
  const { allowedHosts } = options;
  const reading = parseHostHeader(hosts);
  switch (reading.kind) {
    case 'absent':
      // On a socket file no name matters.
      return head.httpVersion === '1.0' || allowedHosts === undefined
        ? undefined
        : createInvalidHostError('no Host field');
    case 'invalid':
      return createInvalidHostError(reading.fault);
    case 'valid':
      if (allowedHosts !== undefined && !isAllowed(allowedHosts, reading.hostPort))
        return createHostNotAllowedError(reading.value);
      lastAllowedHost.set(options, reading.value);
      return undefined;
  }
}

function createInvalidHostError(fault: string): SidecarError {
  return new SidecarError('BAD_REQUEST', `the request has ${fault}: exactly one valid Host is expected`);
}

function createHostNotAllowedError(host: string): SidecarError {
  return new SidecarError(
    'HOST_NOT_ALLOWED',
    `the host ${quoteForMessage(host)} is not allowed; if it is meant, add it to SIDECAR_ALLOWED_HOSTS`,
  );
}

function checkOrigin(options: GuardOptions, fields: HeaderView): SidecarError | undefined {
  const origins = fields.getAll('origin');
  const sites = fields.getAll('sec-fetch-site');
  if (origins.length + sites.length === 0) return undefined;
  const strangers = origins.filter((origin) => !options.allowedOrigins.includes(origin.toLowerCase()));
  if (strangers[0] !== undefined || origins.length > 1) {
    return new SidecarError(
      'ORIGIN_NOT_ALLOWED',
      `requests of web pages from ${quoteForMessage(strangers[0] ?? origins.join(', '))} are not allowed; ` +
        'if it is meant, add the origin to SIDECAR_ALLOWED_ORIGINS',
    );
  }
  if (origins.length === 1 || sites.every((site) => site.toLowerCase() === 'none')) return undefined;
  return new SidecarError(
    'ORIGIN_NOT_ALLOWED',
    `requests that a web page starts (Sec-Fetch-Site: ${quoteForMessage(sites.join(', '))}) are not allowed; ` +
      'SIDECAR_ALLOWED_ORIGINS names the pages that may',
  );
}

function checkRequiredHeader(options: GuardOptions, fields: HeaderView): SidecarError | undefined {
  const { requiredHeader } = options;
  if (requiredHeader === undefined) return undefined;
  const values = fields.getAll(requiredHeader.name);
  if (values.length === 1 && isEqualConstantTime(values[0] ?? '', requiredHeader.value)) return undefined;
  return new SidecarError(
    'REQUEST_NOT_ALLOWED',
    `the field ${requiredHeader.name} is missing or wrong: every request must carry it (listen.requiredHeader)`,
  );
}

/** Compares without stopping at the first difference; the length may show. */
function isEqualConstantTime(given: string, expected: string): boolean {
  let difference = given.length ^ expected.length;
  for (let at = 0; at < expected.length; at++) difference |= expected.charCodeAt(at) ^ given.charCodeAt(at);
  return difference === 0;
}
