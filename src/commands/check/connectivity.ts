/** Checks the connection to one server or egress proxy: name, TCP connection or tunnel, TLS. After a failed step the others are skipped. */
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { Config } from '../../config/config.ts';
import { formatSettingName } from '../../config/load/problems.ts';
import { getHostAndPort, type EgressProxy, type ProxySelector } from '../../platform/egress/proxy-selector.ts';
import { ProxyFault } from '../../platform/egress/proxy-fault.ts';
import { openTunnel } from '../../platform/egress/tunnel.ts';
import { loadTlsContext, type ClientCertificateFiles } from '../../platform/tls.ts';
import { evaluateHandshake, type TlsSettingNames } from './evaluate/evaluate-tls.ts';
import { connectToEach, resolveName } from './dns-and-tcp.ts';
import { performHandshake } from './tls-handshake.ts';
import { errorCodeOf } from '../../platform/connection-faults.ts';
import { StepRunner, type CheckContext, type CheckStep, type StepResult } from './step-runner.ts';

export interface ConnectivityTarget {
  readonly host: string;
  readonly port: number;
  readonly usesTls: boolean;
  readonly isHttp: boolean;
  readonly clientCertificate?: ClientCertificateFiles | undefined;
  readonly names: TlsSettingNames;
  /** For each step. */
  readonly timeoutMs: number;
}

const PROXY_TIMEOUT_MS = 5000;

/** Selects the forward proxy of a destination, and knows whether it is reachable itself. */
export interface EgressCheckContext extends CheckContext {
  readonly egress: ProxySelector;
  readonly proxies: Pick<ProxyChecks, 'isReached'>;
}

/** As `checkConnectivity`, through the forward proxy if the URL has one. */
export function checkThroughEgress(
  runner: StepRunner,
  url: URL,
  target: ConnectivityTarget,
  context: EgressCheckContext,
): Promise<boolean> {
  const proxy = context.egress(url);
  return checkConnectivity(runner, target, context, proxy && { proxy, isReached: context.proxies.isReached(proxy) });
}

interface CheckedProxy {
  readonly proxy: EgressProxy;
  readonly isReached: Promise<boolean>;
}

/** Resolves with true when every step succeeded. */
export async function checkConnectivity(
  runner: StepRunner,
  target: ConnectivityTarget,
  context: CheckContext,
  proxy?: CheckedProxy,
): Promise<boolean> {
  const socket = await (proxy === undefined
    ? connectDirectly(runner, target, context)
    : connectThroughProxy(runner, target, context, proxy));
  if (socket === undefined) {
    runner.skip(['tls'], 'there is no connection');
    return false;
  }
  if (!target.usesTls) {
    socket.destroy();
    runner.skip(['tls'], 'not used, as configured');
    return true;
  }
  return (await runner.run('tls', () => checkTls(socket, target, context))) === true;
}

async function connectDirectly(
  runner: StepRunner,
  target: ConnectivityTarget,
  { clock, signal }: CheckContext,
): Promise<Socket | undefined> {
  const place = { ...target, setting: target.names.address };
  const addresses = await runner.run('dns', () => resolveName(place, clock));
  if (addresses !== undefined) return runner.run('tcp', () => connectToEach(addresses, place, clock, signal));
  runner.skip(['tcp'], 'there is no address');
  return undefined;
}

async function connectThroughProxy(
  runner: StepRunner,
  { host, port, timeoutMs }: ConnectivityTarget,
  { signal }: CheckContext,
  { proxy, isReached }: CheckedProxy,
): Promise<Socket | undefined> {
  const name = proxy.url.host;
  runner.skip(['dns'], `the egress proxy ${name} resolves names and connects`);
  if (!(await isReached)) {
    runner.skip(['tunnel'], `the egress proxy ${name} cannot be used`);
    return undefined;
  }
  return runner.run('tunnel', async (): Promise<StepResult<Socket>> => {
    try {
      const until = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const socket = await openTunnel(proxy, { host, port }, until);
      socket.on('error', () => socket.destroy());
      return { outcome: 'ok', detail: `through the egress proxy ${name} to ${host}:${port}`, value: socket };
    } catch (error) {
      if (signal.aborted) throw error;
      const timedOut = `the egress proxy ${name} opened no connection to ${host}:${port} within ${timeoutMs} ms`;
      const detail = error instanceof ProxyFault ? error.message : timedOut;
      const advice = `let the proxy allow ${host}:${port} for this user, or add ${host} to egress.noProxy (SIDECAR_EGRESS_NO_PROXY)`;
      return { outcome: 'fail', detail, advice };
    }
  });
}

async function checkTls(
  socket: Socket,
  target: ConnectivityTarget,
  { clock, signal }: CheckContext,
): Promise<StepResult<true>> {
  let secureContext: SecureContext;
  try {
    secureContext = loadTlsContext(target.names.caFile, target.clientCertificate);
  } catch (error) {
    socket.destroy();
    const detail = `the files for TLS cannot be used (${errorCodeOf(error)})`;
    return { outcome: 'fail', detail, advice: `check ${target.names.ca} and ${target.names.certificate}` };
  }
  const handshake = await performHandshake({ ...target, socket, context: secureContext, clock, signal });
  const finding = evaluateHandshake(handshake, { ...target, wallNow: clock.wallNow() });
  return finding.outcome === 'fail' ? finding : { ...finding, value: true };
}

export function createTarget(
  url: URL,
  rest: Pick<ConnectivityTarget, 'clientCertificate' | 'names' | 'timeoutMs'>,
): ConnectivityTarget {
  return { ...getHostAndPort(url), usesTls: url.protocol === 'https:', isHttp: true, ...rest };
}

export interface ProxyChecks {
  /** Whether the proxy is reachable; true for one that was not checked. */
  isReached(proxy: EgressProxy): Promise<boolean>;
  /** In the order of the settings. */
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
    reached.set(url.host, checkConnectivity(runner, createProxyTarget(url, key, egress.caFile), context));
  }
  return {
    isReached: (proxy) => reached.get(proxy.url.host) ?? Promise.resolve(true),
    steps: Promise.all(reached.values()).then(() => runners.flatMap(({ steps }) => steps)),
  };
}

function createProxyTarget(url: URL, key: 'egress.proxy' | 'egress.httpProxy', caFile: string | undefined) {
  return createTarget(url, {
    names: {
      address: `${formatSettingName(key)} or HTTPS_PROXY`,
      ca: formatSettingName('egress.caFile'),
      certificate: 'none: proxies get no client certificate',
      caFile,
    },
    timeoutMs: PROXY_TIMEOUT_MS,
  });
}
