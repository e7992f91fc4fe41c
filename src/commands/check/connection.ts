/** What the sidecar's own clients report of the connections that they open, as steps: addresses or tunnel, then TLS. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { TLSSocket, type SecureContext } from 'node:tls';
import type { Clock } from '../../platform/clock.ts';
import {
  errorCodeOf,
  formatTried,
  HandshakeReset,
  NO_ROUTE_CODES,
  ProxyFault,
} from '../../platform/connection-faults.ts';
import type { TriedAddress } from '../../platform/connection-faults.ts';
import { buildEgressConnector } from '../../platform/egress/connector.ts';
import { getHostAndPort, type ProxySelector } from '../../platform/egress/proxy-selector.ts';
import { describeFault, type FaultSettings } from '../../platform/faults.ts';
import { isLoopbackHost } from '../../platform/loopback.ts';
import { formatAuthority, type LookUpName } from '../../platform/open-connection.ts';
import type { Secrets } from '../../platform/secrets.ts';
import { loadTlsContext, type ClientCertificateFiles } from '../../platform/tls.ts';
import { evaluateSession } from './evaluate/evaluate-tls.ts';
import type { CheckContext, CheckFinding, StepRunner } from './step-runner.ts';

export interface CheckedServer {
  readonly caFile: string | undefined;
  readonly clientCertificate: ClientCertificateFiles | undefined;
  readonly names: FaultSettings & { readonly ca: string };
}

/** `secrets` gets each secret that is read, and the token. */
export interface PartnerCheckContext extends CheckContext {
  readonly egress: ProxySelector;
  readonly secrets: Secrets;
  /** The authorities of the upstream, of which auth.caFile is another if it has a value of its own. */
  readonly sharedCaFile: string | undefined;
  /** Default: the system's. */
  readonly lookUp?: LookUpName;
}

/** A connection that is open, or why it is not. */
type Outcome = Socket | Error;
export type ConnectionObserver = (outcome: Outcome, tried: readonly TriedAddress[], url: URL) => void;

/** Records the steps of each connection that a client opens, one for each origin. */
export function observeConnections(
  runner: StepRunner,
  server: CheckedServer,
  { clock, egress, signal }: PartnerCheckContext,
): ConnectionObserver {
  const origins = new Set<string>();
  const startedAt = clock.now();
  return (outcome, tried, url) => {
    if (signal.aborted || origins.has(url.origin)) return;
    origins.add(url.origin);
    const proxy = egress(url)?.url.host;
    const fault = outcome instanceof Error ? describeOutcome(outcome, url, server, clock) : undefined;
    const wasConnected = proxy === undefined ? tried.some(isConnected) : !(outcome instanceof ProxyFault);
    const connected = wasConnected ? evaluateTried(tried, url, proxy) : fault;
    if (connected !== undefined) runner.record('connect', connected, clock.now() - startedAt);
    if (!wasConnected || url.protocol !== 'https:') return;
    if (fault !== undefined) runner.record('tls', fault);
    else if (outcome instanceof TLSSocket)
      runner.record('tls', evaluateSession(outcome, server.clientCertificate !== undefined, clock.wallNow()));
  };
}

/** Opens a connection and sends nothing. @returns whether the server accepted it */
export async function checkConnection(
  runner: StepRunner,
  server: CheckedServer & { url: URL; timeoutMs: number; tlsGroups: string | undefined },
  check: PartnerCheckContext,
): Promise<boolean> {
  const { url, timeoutMs, tlsGroups, caFile, clientCertificate, names } = server;
  let secureContext: SecureContext | undefined;
  try {
    if (url.protocol === 'https:') secureContext = loadTlsContext(caFile, clientCertificate, tlsGroups);
  } catch (error) {
    const detail = `the files for TLS cannot be used (${errorCodeOf(error)})`;
    runner.record('tls', { outcome: 'fail', detail, advice: `check ${names.ca} and ${names.certificate ?? ''}` });
    return false;
  }
  const tried: TriedAddress[] = [];
  const connect = buildEgressConnector({ ...check, destination: url, secureContext, timeoutMs, tried });
  const observe = observeConnections(runner, server, check);
  const { hostname, host, protocol, port } = url;
  const outcome = await new Promise<Outcome>((resolve) => {
    connect({ hostname, host, protocol, port }, (error, socket) => {
      resolve(error ?? socket);
    });
  });
  if (check.signal.aborted) {
    await runner.run('connect', () => Promise.reject(check.signal.reason as Error));
    return false;
  }
  const judged = outcome instanceof TLSSocket ? await whenAccepted(outcome, check) : outcome;
  observe(judged, tried, url);
  if (judged instanceof Error) return false;
  judged.destroy();
  return true;
}

/** In TLS 1.3 the server refuses a client certificate, or that there is none, after the client's side of the handshake. */
const CERTIFICATE_ALERT_TIMEOUT_MS = 500;

/** Most servers send a session ticket once they accept; without one, the timeout decides. */
async function whenAccepted(socket: TLSSocket, { clock, signal }: PartnerCheckContext): Promise<Outcome> {
  if (socket.getProtocol() !== 'TLSv1.3') return socket;
  const { promise: ended, resolve, reject } = Promise.withResolvers<undefined>();
  const cancel = clock.after(CERTIFICATE_ALERT_TIMEOUT_MS, () => resolve(undefined));
  socket.once('close', () => reject(new HandshakeReset(true)));
  try {
    await Promise.race([once(addAbortSignal(signal, socket), 'session'), ended]);
    return socket;
  } catch (error) {
    return error as Error;
  } finally {
    cancel();
  }
}

function describeOutcome(error: Error, url: URL, { names, caFile }: CheckedServer, clock: Clock): CheckFinding {
  const { host, port } = getHostAndPort(url);
  const ca = `${names.ca} (now ${caFile ?? "the system's roots"})`;
  const { cause, words, advice } = describeFault(error, { ...names, ca });
  const today = new Date(clock.wallNow()).toISOString().slice(0, 10);
  const isOfTime = cause === 'certificate_expired' || cause === 'certificate_not_yet_valid';
  const detail = `${formatAuthority(host, port)} ${words}`;
  return { outcome: 'fail', detail, advice: isOfTime ? `${advice} (local date ${today})` : advice };
}

const isConnected = ({ outcome }: TriedAddress): boolean => outcome === 'connected';

function evaluateTried(tried: readonly TriedAddress[], url: URL, proxy: string | undefined): CheckFinding {
  const { host, port } = getHostAndPort(url);
  if (proxy !== undefined)
    return { outcome: 'ok', detail: `through the egress proxy ${proxy} to ${formatAuthority(host, port)}` };
  const detail = formatTried(tried);
  const isOdd = tried.slice(0, tried.findIndex(isConnected)).some(({ outcome }) => !NO_ROUTE_CODES.has(outcome));
  // Missing IPv6 is no fault, and localhost often serves one address family only.
  if (!isOdd || isLoopbackHost(host)) return { outcome: 'ok', detail };
  const advice = `tell the operator of ${host} that some of its addresses do not respond; connections use the others`;
  return { outcome: 'warn', detail, advice };
}
