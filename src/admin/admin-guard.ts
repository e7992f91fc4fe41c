/** Access to the admin port (pure): against DNS rebinding and cross-site requests of a browser on the same machine. */
import type { IncomingMessage } from 'node:http';
import { isIP, isIPv4 } from 'node:net';
import { parseHostHeader, type HostPort } from '../platform/host-header.ts';
import { truncate } from '../platform/truncate.ts';
import type { AdminProblem } from './admin-response.ts';

type GuardedRequest = Readonly<Pick<IncomingMessage, 'httpVersion' | 'rawHeaders'>>;

const MAX_ECHO_LENGTH = 100;
const BROWSER_HEADERS: ReadonlySet<string> = new Set(['origin', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest']);

/**
 * Checks the header fields of a request; undefined: it passes. IP literals always pass as Host (kubelet, Prometheus), since DNS rebinding needs a name.
 * `Origin` must be that of this server; `Sec-Fetch-Site` must be `none` or `same-origin`.
 * @param allowedHosts an entry without a port allows every port
 */
export function guardAdminRequest(
  request: GuardedRequest,
  allowedHosts: readonly HostPort[],
): AdminProblem | undefined {
  const parsed = parseHostHeader(listHeaderValues(request, 'host'));
  switch (parsed.kind) {
    case 'absent':
      return request.httpVersion === '1.0' ? evaluateOrigin(request, undefined) : rejectBadRequest('no Host field');
    case 'invalid':
      return rejectBadRequest(parsed.fault);
    case 'valid':
      if (isAllowed(parsed.hostPort, allowedHosts)) return evaluateOrigin(request, parsed.value.toLowerCase());
      return refuse(
        'HOST_NOT_ALLOWED',
        `Host ${quote(parsed.value)} is not allowed; add it to SIDECAR_ADMIN_ALLOWED_HOSTS if it should be.`,
      );
  }
}

/** Without an address only a peer on a socket file is local: elsewhere the connection was reset, and the peer is unknown. */
export function isLocalPeer(address: string | undefined, isOnSocketFile: boolean): boolean {
  if (address === undefined) return isOnSocketFile;
  const bare = address.replace(/^::ffff:/i, '');
  return address === '::1' || (isIPv4(bare) && bare.startsWith('127.'));
}

function evaluateOrigin(request: GuardedRequest, host: string | undefined): AdminProblem | undefined {
  const origins = listHeaderValues(request, 'origin');
  const origin = origins.find((each) => host === undefined || each.toLowerCase() !== `http://${host}`);
  if (origin !== undefined)
    return refuse('ORIGIN_NOT_ALLOWED', `Origin ${quote(origin)} is not the origin of this server.`);
  const site = listHeaderValues(request, 'sec-fetch-site').find((each) => each !== 'none' && each !== 'same-origin');
  return site === undefined
    ? undefined
    : refuse('ORIGIN_NOT_ALLOWED', `Requests from other sites (${quote(site)}) are refused.`);
}

function quote(value: string): string {
  return `"${truncate(value, MAX_ECHO_LENGTH)}"`;
}

function isAllowed({ host, port = 80 }: HostPort, allowedHosts: readonly HostPort[]): boolean {
  if (isIP(host) === 4 || (host.startsWith('[') && !host.startsWith('[v'))) return true;
  return allowedHosts.some((allowed) => allowed.host === host && (allowed.port ?? port) === port);
}

/** Whether a request has a header field that a browser adds to each POST and that no script can remove. */
export function isFromBrowser(rawHeaders: readonly string[]): boolean {
  return rawHeaders.some((name, index) => index % 2 === 0 && BROWSER_HEADERS.has(name.toLowerCase()));
}

function listHeaderValues({ rawHeaders }: GuardedRequest, name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

function rejectBadRequest(fault: string): AdminProblem {
  return { status: 400, code: 'BAD_REQUEST', detail: `The request has ${fault}: exactly one valid Host is expected.` };
}

function refuse(code: 'HOST_NOT_ALLOWED' | 'ORIGIN_NOT_ALLOWED', detail: string): AdminProblem {
  return { status: 403, code, detail };
}
