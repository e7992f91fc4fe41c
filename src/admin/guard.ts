/**
 * Who may ask the admin port: pure decisions on Host, Origin, Sec-Fetch-Site and the peer's address, against DNS
 * rebinding and cross-site requests of a browser on the same machine. Answers are the server's business.
 */
import { isIP, isIPv4 } from 'node:net';
import { parseHostHeader, type HostPort } from '../platform/host-header.ts';

/** One entry of the allow-list: host in lower case, IPv6 in brackets; no port allows any. */
export interface AllowedAdminHost {
  readonly host: string;
  readonly port: number | undefined;
}

export type AdminGuardDecision =
  | { readonly kind: 'pass' }
  | {
      readonly kind: 'refuse';
      readonly status: 400 | 403;
      readonly code: 'BAD_REQUEST' | 'HOST_NOT_ALLOWED' | 'ORIGIN_NOT_ALLOWED';
      readonly detail: string;
    };

/** What the guard looks at. */
export interface GuardedAdminRequest {
  readonly httpVersion: string;
  /** Names and values by turns, as node:http has them: nothing folded or dropped. */
  readonly rawHeaders: readonly string[];
}

const PASS: AdminGuardDecision = { kind: 'pass' };
const MAX_ECHO_LENGTH = 100;

/**
 * Judges a request by its fields. IP literals always pass as Host (kubelet, Prometheus): rebinding needs a name. An
 * `Origin` must be that of this very server; `Sec-Fetch-Site`, where a browser sends it, `none` or `same-origin`.
 */
export function guardAdminRequest(
  request: GuardedAdminRequest,
  allowedHosts: readonly AllowedAdminHost[],
): AdminGuardDecision {
  const reading = parseHostHeader(listHeaderValues(request, 'host'));
  switch (reading.kind) {
    case 'absent':
      return request.httpVersion === '1.0' ? evaluateOrigin(request, undefined) : refuseBadRequest('no Host field');
    case 'invalid':
      return refuseBadRequest(reading.fault);
    case 'valid':
      if (isAllowed(reading.hostPort, allowedHosts)) return evaluateOrigin(request, reading.value.toLowerCase());
      return refuse(
        'HOST_NOT_ALLOWED',
        `Host "${truncate(reading.value)}" is not allowed here; SIDECAR_ADMIN_ALLOWED_HOSTS names the hosts that are.`,
      );
  }
}

/**
 * True for a peer on this machine. One without an address is there on a socket file only: elsewhere it has reset its connection
 * before it was asked for, and may be anybody.
 */
export function isLocalPeer(address: string | undefined, isOnSocketFile: boolean): boolean {
  if (address === undefined) return isOnSocketFile;
  const bare = address.replace(/^::ffff:/i, '');
  return address === '::1' || (isIPv4(bare) && bare.startsWith('127.'));
}

function evaluateOrigin(request: GuardedAdminRequest, host: string | undefined): AdminGuardDecision {
  const foreignOrigin = listHeaderValues(request, 'origin').find(
    (origin) => host === undefined || origin.toLowerCase() !== `http://${host}`,
  );
  if (foreignOrigin !== undefined)
    return refuse('ORIGIN_NOT_ALLOWED', `Origin "${truncate(foreignOrigin)}" is not this server's own.`);
  const foreignSite = listHeaderValues(request, 'sec-fetch-site').find(
    (site) => site !== 'none' && site !== 'same-origin',
  );
  if (foreignSite !== undefined)
    return refuse('ORIGIN_NOT_ALLOWED', `Requests from other sites ("${truncate(foreignSite)}") are refused.`);
  return PASS;
}

function isAllowed({ host, port = 80 }: HostPort, allowedHosts: readonly AllowedAdminHost[]): boolean {
  if (isIP(host) === 4 || (host.startsWith('[') && !host.startsWith('[v'))) return true;
  return allowedHosts.some((allowed) => allowed.host === host && (allowed.port ?? port) === port);
}

function listHeaderValues({ rawHeaders }: GuardedAdminRequest, name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

function refuseBadRequest(fault: string): AdminGuardDecision {
  const detail = `The request has ${fault}: exactly one valid Host is expected.`;
  return { kind: 'refuse', status: 400, code: 'BAD_REQUEST', detail };
}

function refuse(code: 'HOST_NOT_ALLOWED' | 'ORIGIN_NOT_ALLOWED', detail: string): AdminGuardDecision {
  return { kind: 'refuse', status: 403, code, detail };
}

function truncate(text: string): string {
  return text.length <= MAX_ECHO_LENGTH ? text : `${text.slice(0, MAX_ECHO_LENGTH)}…`;
}
