/**
 * Who may speak to the sidecar, decided before anything else. Pure.
 * A proxy that adds credentials on loopback is reachable by every web page in the machine's browser: a page betrays
 * itself by its Origin or Sec-Fetch-Site field (Fetch standard), DNS rebinding only by its Host. Names are counted in
 * the raw fields, since parsed ones hide repetitions (RFC 9112 §3.2).
 */
import { SidecarError } from '../platform/errors.ts';
import { parseHostPort, quote, readHost, type HostPort } from '../platform/host-field.ts';

export interface AllowedHost {
  readonly host: string;
  readonly port: number | undefined;
}

export interface GuardOptions {
  /** Undefined on a `unix:` listener, where any valid Host passes. */
  readonly allowedHosts: readonly AllowedHost[] | undefined;
  readonly allowedOrigins: readonly string[];
  readonly requiredHeader: { readonly name: string; readonly value: string } | undefined;
}

/** What the guard looks at. */
export interface IncomingHead {
  readonly method: string;
  readonly target: string;
  readonly httpVersion: string;
  /** Flat list [name, value, …]. */
  readonly rawFields: readonly string[];
}

export type GuardVerdict =
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
export function guardRequest(options: GuardOptions, head: IncomingHead): GuardVerdict {
  const fields = new FieldView(head.rawFields);
  const target = originForm(options, head.target);
  const refusal =
    (target instanceof SidecarError ? target : undefined) ??
    refuseMethod(head.method) ??
    refuseFraming(head, fields) ??
    refuseHost(options, head, fields) ??
    refuseOrigin(options, fields);
  if (refusal !== undefined) return { kind: 'refused', error: refusal };
  const corsOrigin = fields.all('origin')[0]?.toLowerCase();
  const isPreflight =
    corsOrigin !== undefined && head.method === 'OPTIONS' && fields.all('access-control-request-method').length > 0;
  // A browser puts no field of the page's own into a preflight.
  const secretRefusal = isPreflight ? undefined : refuseSecret(options, fields);
  if (secretRefusal !== undefined) return { kind: 'refused', error: secretRefusal };
  return { kind: 'pass', target: target as string, corsOrigin, isPreflight };
}

const NONE: readonly string[] = [];

/** All values of a few fields, by lower-case name. */
class FieldView {
  readonly #rawFields: readonly string[];

  constructor(rawFields: readonly string[]) {
    this.#rawFields = rawFields;
  }

  all(name: string): readonly string[] {
    let values: string[] | undefined;
    for (let at = 0; at + 1 < this.#rawFields.length; at += 2) {
      const candidate = this.#rawFields[at] ?? '';
      if (candidate.length === name.length && candidate.toLowerCase() === name) {
        const value = this.#rawFields[at + 1] ?? '';
        if (values === undefined) values = [value];
        else values.push(value);
      }
    }
    return values ?? NONE;
  }
}

/** Clients mostly come with the same Host again. */
const lastPassed = new WeakMap<GuardOptions, string>();

function isAllowed(allowed: readonly AllowedHost[], { host, port = 80 }: HostPort): boolean {
  return allowed.some((entry) => entry.host === host && (entry.port === undefined || entry.port === port));
}

function originForm(options: GuardOptions, target: string): string | SidecarError {
  if (target.startsWith('/')) return target;
  const [, authority, rest] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(target) ?? [];
  if (authority === undefined || rest === undefined) {
    return new SidecarError('BAD_REQUEST', 'the request target is neither a path nor an http: URL of an allowed host');
  }
  if (options.allowedHosts !== undefined) {
    const hostPort = parseHostPort(authority);
    if (hostPort === undefined)
      return new SidecarError('BAD_REQUEST', `the request target has the invalid authority ${quote(authority)}`);
    if (!isAllowed(options.allowedHosts, hostPort)) return hostRefusal(authority);
  }
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Tunnels, echoes of credentials, and what node:http's parser knows of RTSP and ICE. */
const NEVER_FORWARDED = new Set(
  'CONNECT TRACE SOURCE ANNOUNCE DESCRIBE FLUSH GET_PARAMETER PAUSE PLAY RECORD REDIRECT SET_PARAMETER SETUP TEARDOWN'.split(
    ' ',
  ),
);

function refuseMethod(method: string): SidecarError | undefined {
  if (!NEVER_FORWARDED.has(method)) return undefined;
  return new SidecarError('METHOD_NOT_ALLOWED', `${method} is not forwarded`);
}

/** What node:http lets pass although two readers could see two different bodies in it (RFC 9112 §6.1, §11.2). */
function refuseFraming(head: IncomingHead, fields: FieldView): SidecarError | undefined {
  if (head.httpVersion !== '1.1' && head.httpVersion !== '1.0') {
    return new SidecarError('BAD_REQUEST', 'the request is neither HTTP/1.1 nor HTTP/1.0');
  }
  const lengths = fields.all('content-length');
  const codings = fields.all('transfer-encoding');
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

function refuseHost(options: GuardOptions, head: IncomingHead, fields: FieldView): SidecarError | undefined {
  const hosts = fields.all('host');
  if (hosts.length === 1 && lastPassed.get(options) === hosts[0]) return undefined;
  const { allowedHosts } = options;
  const reading = readHost(hosts);
  switch (reading.kind) {
    case 'absent':
      // On a socket file no name matters.
      return head.httpVersion === '1.0' || allowedHosts === undefined ? undefined : hostFault('no Host field');
    case 'invalid':
      return hostFault(reading.fault);
    case 'valid':
      if (allowedHosts !== undefined && !isAllowed(allowedHosts, reading.hostPort)) return hostRefusal(reading.value);
      lastPassed.set(options, reading.value);
      return undefined;
  }
}

function hostFault(fault: string): SidecarError {
  return new SidecarError('BAD_REQUEST', `the request has ${fault}: exactly one valid Host is expected`);
}

function hostRefusal(host: string): SidecarError {
  return new SidecarError(
    'HOST_NOT_ALLOWED',
    `the host ${quote(host)} is not allowed; if it is meant, add it to SIDECAR_ALLOWED_HOSTS`,
  );
}

function refuseOrigin(options: GuardOptions, fields: FieldView): SidecarError | undefined {
  const origins = fields.all('origin');
  const sites = fields.all('sec-fetch-site');
  if (origins.length + sites.length === 0) return undefined;
  const strangers = origins.filter((origin) => !options.allowedOrigins.includes(origin.toLowerCase()));
  if (strangers[0] !== undefined || origins.length > 1) {
    return new SidecarError(
      'ORIGIN_NOT_ALLOWED',
      `requests of web pages from ${quote(strangers[0] ?? origins.join(', '))} are not allowed; ` +
        'if it is meant, add the origin to SIDECAR_ALLOWED_ORIGINS',
    );
  }
  if (origins.length === 1 || sites.every((site) => site.toLowerCase() === 'none')) return undefined;
  return new SidecarError(
    'ORIGIN_NOT_ALLOWED',
    `requests that a web page starts (Sec-Fetch-Site: ${quote(sites.join(', '))}) are not allowed; ` +
      'SIDECAR_ALLOWED_ORIGINS names the pages that may',
  );
}

function refuseSecret(options: GuardOptions, fields: FieldView): SidecarError | undefined {
  const { requiredHeader } = options;
  if (requiredHeader === undefined) return undefined;
  const values = fields.all(requiredHeader.name);
  if (values.length === 1 && isSame(values[0] ?? '', requiredHeader.value)) return undefined;
  return new SidecarError(
    'REQUEST_NOT_ALLOWED',
    `the field ${requiredHeader.name} is missing or wrong: every request must carry it (listen.requiredHeader)`,
  );
}

/** Compares without stopping at the first difference; the length may show. */
function isSame(given: string, expected: string): boolean {
  let difference = given.length ^ expected.length;
  for (let at = 0; at < expected.length; at++) difference |= expected.charCodeAt(at) ^ given.charCodeAt(at);
  return difference === 0;
}
