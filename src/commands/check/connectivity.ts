/** Checks the connection to one server: name, TCP connection or tunnel, TLS. After a failed step the others are skipped. */
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { getHostAndPort } from '../../platform/egress/proxy-selector.ts';
import type { ForwardProxy } from '../../platform/egress/proxy-selector.ts';
import { ProxyFault } from '../../platform/egress/proxy-fault.ts';
import { openTunnel } from '../../platform/egress/tunnel.ts';
import { evaluateHandshake } from './evaluate/evaluate-tls.ts';
import { connectToEach, resolveName } from './dns-and-tcp.ts';
import { performHandshake } from './tls-handshake.ts';
import type { TlsSettingNames } from './evaluate/tls-faults.ts';
import { errorCodeOf } from './step-runner.ts';
import type { StepResult, CheckContext, StepRunner } from './step-runner.ts';

export interface ConnectivityTarget {
  readonly host: string;
  readonly port: number;
  /** The TLS context; undefined: no TLS. Throws when its files cannot be used. */
  readonly trust: (() => SecureContext) | undefined;
  readonly isHttp: boolean;
  readonly clientCertificate: 'none' | 'offered';
  readonly names: TlsSettingNames;
  /** For each step. */
  readonly timeoutMs: number;
}

/** A forward proxy, and whether it is reachable itself. */
export interface CheckedProxy {
  readonly proxy: ForwardProxy;
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
  const { trust } = target;
  if (socket === undefined) {
    runner.skip(['tls'], 'there is no connection');
    return false;
  }
  if (trust === undefined) {
    socket.destroy();
    runner.skip(['tls'], 'not used, as configured');
    return true;
  }
  return (await runner.run('tls', () => checkTls(socket, trust, target, context))) === true;
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
  { clock, signal }: CheckContext,
  { proxy, isReached }: CheckedProxy,
): Promise<Socket | undefined> {
  const name = proxy.url.host;
  runner.skip(['dns'], `the egress proxy ${name} resolves names and connects`);
  if (!(await isReached)) {
    runner.skip(['tunnel'], `the egress proxy ${name} cannot be used`);
    return undefined;
  }
  return runner.run('tunnel', async (): Promise<StepResult<Socket>> => {
    const timeout = new AbortController();
    const cancel = clock.after(timeoutMs, () => timeout.abort());
    try {
      const socket = await openTunnel(proxy, { host, port }, AbortSignal.any([signal, timeout.signal]));
      socket.on('error', () => socket.destroy());
      return { outcome: 'ok', detail: `through the egress proxy ${name} to ${host}:${port}`, value: socket };
    } catch (error) {
      if (signal.aborted) throw error;
      const timedOut = `the egress proxy ${name} opened no connection to ${host}:${port} within ${timeoutMs} ms`;
      const detail = error instanceof ProxyFault ? error.message : timedOut;
      return { outcome: 'fail', detail, advice: adviseProxy(host, port) };
    } finally {
      cancel();
    }
  });
}

function adviseProxy(host: string, port: number): string {
  return `let the proxy allow ${host}:${port} for this user, or add ${host} to egress.noProxy (SIDECAR_EGRESS_NO_PROXY)`;
}

async function checkTls(
  socket: Socket,
  trust: () => SecureContext,
  target: ConnectivityTarget,
  { clock, signal }: CheckContext,
): Promise<StepResult<true>> {
  let secureContext: SecureContext;
  try {
    secureContext = trust();
  } catch (error) {
    socket.destroy();
    const detail = `the files for TLS cannot be used (${errorCodeOf(error)})`;
    return { outcome: 'fail', detail, advice: `check ${target.names.ca} and ${target.names.certificate}` };
  }
  const handshake = await performHandshake({ ...target, socket, context: secureContext, clock, signal });
  const finding = evaluateHandshake(handshake, { ...target, wallNow: clock.wallNow() });
  return finding.outcome === 'fail' ? finding : { ...finding, value: true };
}

/** The target of a URL. */
export function createTarget(url: URL, rest: Omit<ConnectivityTarget, 'host' | 'port' | 'isHttp'>): ConnectivityTarget {
  return { ...getHostAndPort(url), isHttp: true, ...rest };
}
