/**
 * Checks the connection to one server or egress proxy: name, TCP connection or tunnel, TLS. It is opened once, as the sidecar opens its
 * own, and each step reports one stage. After a failed step the others are skipped.
 */
import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { isIP } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { TLSSocket, type SecureContext } from 'node:tls';
import type { Config } from '../../config/config.ts';
import { formatSettingName } from '../../config/load/problems.ts';
import type { Clock } from '../../platform/clock.ts';
import { errorCodeOf, formatTried, NO_ROUTE_CODES, type TriedAddress } from '../../platform/connection-faults.ts';
import { buildEgressConnector } from '../../platform/egress/connector.ts';
import { getHostAndPort, selectNoProxy } from '../../platform/egress/proxy-selector.ts';
import type { EgressProxy, ProxySelector } from '../../platform/egress/proxy-selector.ts';
import { isLoopbackHost } from '../../platform/loopback.ts';
import { lookUpName, type LookUpName } from '../../platform/open-connection.ts';
import { formatAuthority } from '../../platform/open-connection.ts';
import type { Secrets } from '../../platform/secrets.ts';
import { loadTlsContext, type ClientCertificateFiles } from '../../platform/tls.ts';
import { describeFault } from '../../platform/faults.ts';
import { evaluateSession } from './evaluate/evaluate-tls.ts';
import {
  StepRunner,
  type CheckContext,
  type CheckFinding,
  type CheckStep,
  type CheckStepName,
  type StepResult,
} from './step-runner.ts';

export interface ConnectivityTarget {
  /** `https:` stands for TLS, also where another protocol than HTTP is above it. */
  readonly url: URL;
  readonly clientCertificate?: ClientCertificateFiles | undefined;
  readonly names: ServerSettingNames;
  readonly timeoutMs: number;
}

interface ServerSettingNames {
  readonly address: string;
  readonly ca: string;
  readonly certificate: string;
  /** The file of trusted authorities; undefined: the system's roots. */
  readonly caFile: string | undefined;
}

const PROXY_TIMEOUT_MS = 5000;
/** In TLS 1.3 the server refuses a client certificate, or that there is none, after the client's side of the handshake. */
const CERTIFICATE_ALERT_TIMEOUT_MS = 500;

interface ConnectivityContext extends CheckContext {
  /** Default: every connection is direct. */
  readonly egress?: ProxySelector;
  readonly proxies?: Pick<ProxyChecks, 'isReached'>;
  readonly lookUp?: LookUpName;
}

/** For the servers of the partner. `secrets` gets each secret that is read, and the token. */
export interface PartnerCheckContext extends ConnectivityContext {
  readonly egress: ProxySelector;
  readonly proxies: ProxyChecks;
  readonly secrets: Secrets;
}

export async function checkConnectivity(
  runner: StepRunner,
  target: ConnectivityTarget,
  context: ConnectivityContext,
): Promise<boolean> {
  const { url, names, clientCertificate } = target;
  const usesTls = url.protocol === 'https:';
  const check = new ConnectionCheck(runner, target, context);
  const proxy = context.egress?.(url);
  const isProxyReached = proxy === undefined || (await context.proxies?.isReached(proxy)) !== false;
  try {
    if (isProxyReached) check.connect(usesTls ? loadTlsContext(names.caFile, clientCertificate) : undefined);
  } catch (error) {
    const detail = `the files for TLS cannot be used (${errorCodeOf(error)})`;
    runner.record('tls', { outcome: 'fail', detail, advice: `check ${names.ca} and ${names.certificate}` });
    return false;
  }
  const isOpen = await (proxy === undefined ? check.checkDirect() : check.checkTunnel(proxy, isProxyReached));
  if (isOpen && usesTls) return check.checkTls();
  runner.skip(['tls'], isOpen ? 'not used, as configured' : 'there is no connection');
  return isOpen;
}

class ConnectionCheck {
  readonly #runner: StepRunner;
  readonly #target: ConnectivityTarget;
  readonly #context: ConnectivityContext;
  readonly #server: ReturnType<typeof getHostAndPort>;
  readonly #tried: TriedAddress[] = [];
  readonly #resolved = Promise.withResolvers<readonly LookupAddress[]>();
  readonly #opened = Promise.withResolvers<undefined>();
  readonly #ready = Promise.withResolvers<TLSSocket>();

  constructor(runner: StepRunner, target: ConnectivityTarget, context: ConnectivityContext) {
    this.#runner = runner;
    this.#target = target;
    this.#context = context;
    this.#server = getHostAndPort(target.url);
  }

  connect(secureContext: SecureContext | undefined): void {
    const { url, timeoutMs } = this.#target;
    const { clock, signal, egress = selectNoProxy, lookUp = lookUpName } = this.#context;
    const connect = buildEgressConnector({
      destination: url,
      egress,
      secureContext,
      timeoutMs,
      clock,
      signal,
      tried: this.#tried,
      lookUp: async (name) => {
        const found = await lookUp(name);
        this.#resolved.resolve(found);
        return found;
      },
      onOpen: () => this.#opened.resolve(undefined),
    });
    const stages = [this.#resolved, this.#opened, this.#ready];
    // An interrupted check does not wait for the later stages.
    for (const { promise } of stages) promise.catch(() => undefined);
    const { host, protocol, port } = url;
    connect({ hostname: this.#server.host, host, protocol, port }, (error, socket) => {
      if (socket instanceof TLSSocket) this.#ready.resolve(addAbortSignal(signal, socket));
      else socket?.destroy();
      for (const { reject } of stages) reject(error);
    });
  }

  async checkDirect(): Promise<boolean> {
    const { host } = this.#server;
    const isResolved = await this.#run('dns', async () => {
      if (isIP(host) !== 0) return { outcome: 'ok', detail: `${host} is an address` };
      const addresses = new Set((await this.#resolved.promise).map(({ address }) => address));
      return { outcome: 'ok', detail: `${host} is ${[...addresses].join(', ')}` };
    });
    if (isResolved)
      return this.#run('tcp', async () => {
        await this.#opened.promise;
        return evaluateTried(this.#tried, host);
      });
    this.#runner.skip(['tcp'], 'there is no address');
    return false;
  }

  async checkTunnel({ url }: EgressProxy, isProxyReached: boolean): Promise<boolean> {
    const name = `the egress proxy ${url.host}`;
    this.#runner.skip(['dns'], `${name} resolves names and connects`);
    if (isProxyReached)
      return this.#run('tunnel', async () => {
        await this.#opened.promise;
        return { outcome: 'ok', detail: `through ${name} to ${formatAuthority(this.#server.host, this.#server.port)}` };
      });
    this.#runner.skip(['tunnel'], `${name} cannot be used`);
    return false;
  }

  checkTls(): Promise<boolean> {
    const { clock } = this.#context;
    return this.#run('tls', async () => {
      const socket = await this.#ready.promise;
      try {
        if (socket.getProtocol() === 'TLSv1.3') await whenAccepted(socket, clock);
        return evaluateSession(socket, this.#target.clientCertificate !== undefined, clock.wallNow());
      } finally {
        socket.destroy();
      }
    });
  }

  async #run(step: CheckStepName, find: () => Promise<CheckFinding>): Promise<boolean> {
    const { signal } = this.#context;
    const result = await this.#runner.run(step, async (): Promise<StepResult<true>> => {
      try {
        return { ...(await find()), value: true };
      } catch (error) {
        if (signal.aborted) throw error;
        const { names } = this.#target;
        const ca = `${names.ca} (now ${names.caFile ?? "the system's roots"})`;
        const { words, advice } = describeFault(error, { ...names, ca });
        const { host, port } = this.#server;
        return { outcome: 'fail', detail: `${formatAuthority(host, port)} ${words}`, advice };
      }
    });
    return result === true;
  }
}

/** Most servers send a session ticket once they accept; without one, the timeout decides. @throws the alert of the server */
async function whenAccepted(socket: TLSSocket, clock: Pick<Clock, 'after'>): Promise<void> {
  const { promise: ended, resolve, reject } = Promise.withResolvers<undefined>();
  const cancel = clock.after(CERTIFICATE_ALERT_TIMEOUT_MS, () => resolve(undefined));
  socket.once('close', () => reject(Object.assign(new Error('the server closed it'), { code: 'ECONNRESET' })));
  await Promise.race([once(socket, 'session'), ended]).finally(cancel);
}

function evaluateTried(tried: readonly TriedAddress[], host: string): CheckFinding {
  const detail = formatTried(tried);
  const used = tried.findIndex(({ outcome }) => outcome === 'connected');
  const isOdd = tried.slice(0, used).some(({ outcome }) => !NO_ROUTE_CODES.has(outcome));
  // Missing IPv6 is no fault, and localhost often serves one address family only.
  if (!isOdd || isLoopbackHost(host)) return { outcome: 'ok', detail };
  const advice = `tell the operator of ${host} that some of its addresses do not respond; connections use the others`;
  return { outcome: 'warn', detail, advice };
}

export interface ProxyChecks {
  /** Whether the proxy is reachable; true for one that was not checked. */
  isReached(proxy: EgressProxy): Promise<boolean>;
  readonly steps: Promise<readonly CheckStep[]>;
}

/** @param isUsed whether any destination has a proxy */
export function checkProxies(egress: Config['egress'], isUsed: boolean, context: CheckContext): ProxyChecks {
  const reached = new Map<string, Promise<boolean>>();
  const runners: StepRunner[] = [];
  const given = [
    [egress.proxy, 'egress.proxy'],
    [egress.httpProxy, 'egress.httpProxy'],
  ] as const;
  for (const [url, key] of isUsed ? given : []) {
    if (url === undefined || reached.has(url.host)) continue;
    const runner = new StepRunner('egress proxy', context);
    runners.push(runner);
    const names = {
      address: `${formatSettingName(key)} or HTTPS_PROXY`,
      ca: formatSettingName('egress.caFile'),
      certificate: 'none: proxies get no client certificate',
      caFile: egress.caFile,
    };
    reached.set(url.host, checkConnectivity(runner, { url, names, timeoutMs: PROXY_TIMEOUT_MS }, context));
  }
  return {
    isReached: (proxy) => reached.get(proxy.url.host) ?? Promise.resolve(true),
    steps: Promise.all(reached.values()).then(() => runners.flatMap(({ steps }) => steps)),
  };
}
