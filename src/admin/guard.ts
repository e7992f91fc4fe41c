/**
 * Who may ask the admin port: pure decisions on Host, Origin, Sec-Fetch-Site and the peer's address, against DNS
 * rebinding and cross-site requests of a browser on the same machine. Answers are the server's business.
 */
import { isIP, isIPv4, isIPv6 } from 'node:net';

/** One entry of the allow-list: host in lower case, IPv6 in brackets; no port allows any. */
export interface AllowedAdminHost {
  readonly host: string;
  readonly port: number | undefined;
}

export type GuardVerdict =
  | { readonly kind: 'pass' }
  | {
      readonly kind: 'refuse';
      readonly code: 'HOST_NOT_ALLOWED' | 'ORIGIN_NOT_ALLOWED';
      readonly detail: string;
    };

/** What the guard looks at. */
export interface GuardedRequest {
  readonly httpVersion: string;
  /** Names and values by turns, as node:http has them: nothing folded or dropped. */
  readonly rawHeaders: readonly string[];
}

const PASS: GuardVerdict = { kind: 'pass' };
const HOST_PATTERN = /^(?<host>\[[\da-f:.]+\]|[^\s:/@,[\]?#\\]+)(?::(?<port>\d{1,5}))?$/;
const LONGEST_ECHO = 100;

/**
 * Judges a request by its fields. IP literals always pass as Host (kubelet, Prometheus): rebinding needs a name. An
 * `Origin` must be that of this very server; `Sec-Fetch-Site`, where a browser sends it, `none` or `same-origin`.
 */
export function judgeRequest(request: GuardedRequest, allowedHosts: readonly AllowedAdminHost[]): GuardVerdict {
  const hosts = valuesOf(request, 'host');
  const [host] = hosts;
  if (host === undefined && request.httpVersion === '1.0') return judgeSite(request, undefined);
  if (host === undefined || hosts.length > 1)
    return refuseHost('Exactly one Host field is expected, with a host that SIDECAR_ADMIN_ALLOWED_HOSTS names.');
  if (!isAllowed(host.toLowerCase(), allowedHosts)) {
    return refuseHost(`Host "${cut(host)}" is not allowed here; SIDECAR_ADMIN_ALLOWED_HOSTS names the hosts that are.`);
  }
  return judgeSite(request, host.toLowerCase());
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

function judgeSite(request: GuardedRequest, host: string | undefined): GuardVerdict {
  const foreignOrigin = valuesOf(request, 'origin').find(
    (origin) => host === undefined || origin.toLowerCase() !== `http://${host}`,
  );
  if (foreignOrigin !== undefined) return refuseOrigin(`Origin "${cut(foreignOrigin)}" is not this server's own.`);
  const foreignSite = valuesOf(request, 'sec-fetch-site').find((site) => site !== 'none' && site !== 'same-origin');
  if (foreignSite !== undefined) return refuseOrigin(`Requests from other sites ("${cut(foreignSite)}") are refused.`);
  return PASS;
}

function isAllowed(host: string, allowedHosts: readonly AllowedAdminHost[]): boolean {
  const { host: name, port } = HOST_PATTERN.exec(host)?.groups ?? {};
  if (name === undefined || Number(port ?? 0) > 65535) return false;
  if (isIP(name) === 4 || (name.startsWith('[') && isIPv6(name.slice(1, -1)))) return true;
  // Without a port in the field it is the scheme's own.
  const actualPort = Number(port ?? 80);
  return allowedHosts.some((allowed) => allowed.host === name && (allowed.port ?? actualPort) === actualPort);
}

function valuesOf({ rawHeaders }: GuardedRequest, name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

function refuseHost(detail: string): GuardVerdict {
  return { kind: 'refuse', code: 'HOST_NOT_ALLOWED', detail };
}

function refuseOrigin(detail: string): GuardVerdict {
  return { kind: 'refuse', code: 'ORIGIN_NOT_ALLOWED', detail };
}

function cut(text: string): string {
  return text.length <= LONGEST_ECHO ? text : `${text.slice(0, LONGEST_ECHO)}…`;
}
