/**
 * The way to one server, step by step: its name, a connection or a tunnel, and TLS. A step that has failed ends it, and those behind
 * it are told as skipped.
 */
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
  /** For TLS; undefined: none is spoken. Throws in words for people when files cannot be used. */
  readonly trust: (() => SecureContext) | undefined;
  readonly isHttp: boolean;
  /** What our client certificate is to the server. */
  readonly clientCertificate: 'none' | 'offered' | 'required';
  readonly names: TlsSettingNames;
  /** For each step, milliseconds. */
  readonly timeoutMs: number;
}

/** The proxy that leads there, and whether it could be reached itself. */
export interface CheckedProxy {
  readonly proxy: ForwardProxy;
  readonly isReached: Promise<boolean>;
}

/** Resolves with true when the whole way is open. */
export async function checkConnectivity(
  walk: StepRunner,
  destination: ConnectivityTarget,
  surroundings: CheckContext,
  detour?: CheckedProxy,
): Promise<boolean> {
  const socket = await (detour === undefined
    ? connectDirectly(walk, destination, surroundings)
    : connectThroughProxy(walk, destination, surroundings, detour));
  const { trust } = destination;
  if (socket === undefined) {
    walk.skip(['tls'], 'there is no connection');
    return false;
  }
  if (trust === undefined) {
    socket.destroy();
    walk.skip(['tls'], 'plain, as configured: no TLS');
    return true;
  }
  return (await walk.run('tls', () => checkTls(socket, trust, destination, surroundings))) === true;
}

async function connectDirectly(
  walk: StepRunner,
  destination: ConnectivityTarget,
  { clock, signal }: CheckContext,
): Promise<Socket | undefined> {
  const place = { ...destination, setting: destination.names.address };
  const addresses = await walk.run('dns', () => resolveName(place, clock));
  if (addresses !== undefined) return walk.run('tcp', () => connectToEach(addresses, place, clock, signal));
  walk.skip(['tcp'], 'there is no address');
  return undefined;
}

async function connectThroughProxy(
  walk: StepRunner,
  { host, port, timeoutMs }: ConnectivityTarget,
  { clock, signal }: CheckContext,
  { proxy, isReached }: CheckedProxy,
): Promise<Socket | undefined> {
  const name = proxy.url.host;
  walk.skip(['dns'], `the egress proxy ${name} resolves names and connects`);
  if (!(await isReached)) {
    walk.skip(['tunnel'], `the egress proxy ${name} cannot be used`);
    return undefined;
  }
  return walk.run('tunnel', async (): Promise<StepResult<Socket>> => {
    const late = new AbortController();
    const cancel = clock.after(timeoutMs, () => late.abort());
    try {
      const socket = await openTunnel(proxy, { host, port }, AbortSignal.any([signal, late.signal]));
      socket.on('error', () => socket.destroy());
      return { outcome: 'ok', detail: `through the egress proxy ${name} to ${host}:${port}`, value: socket };
    } catch (error) {
      if (signal.aborted) throw error;
      const late = `the egress proxy ${name} opened no connection to ${host}:${port} within ${timeoutMs} ms`;
      const detail = error instanceof ProxyFault ? error.message : late;
      return { outcome: 'fail', detail, advice: adviseProxy(host, port) };
    } finally {
      cancel();
    }
  });
}

function adviseProxy(host: string, port: number): string {
  return `have it allow ${host}:${port} to this user, or add ${host} to egress.noProxy (SIDECAR_EGRESS_NO_PROXY)`;
}

async function checkTls(
  socket: Socket,
  trust: () => SecureContext,
  destination: ConnectivityTarget,
  { clock, signal }: CheckContext,
): Promise<StepResult<true>> {
  let context: SecureContext;
  try {
    context = trust();
  } catch (error) {
    socket.destroy();
    const detail = `the files for TLS cannot be used (${errorCodeOf(error)})`;
    return { outcome: 'fail', detail, advice: `see ${destination.names.ca} and ${destination.names.certificate}` };
  }
  const handshake = await performHandshake({ ...destination, socket, context, clock, signal });
  const verdict = evaluateHandshake(handshake, { ...destination, wallNow: clock.wallNow() });
  return verdict.outcome === 'fail' ? verdict : { ...verdict, value: true };
}

/** Where a URL leads, with what is needed on the way; `names.caFile` says whose certificates are trusted. */
export function createTarget(url: URL, rest: Omit<ConnectivityTarget, 'host' | 'port' | 'isHttp'>): ConnectivityTarget {
  return { ...getHostAndPort(url), isHttp: true, ...rest };
}
