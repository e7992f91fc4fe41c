/**
 * The way to one server, step by step: its name, a connection or a tunnel, and TLS. A step that has failed ends it, and those behind
 * it are told as skipped.
 */
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { addressOf } from '../../platform/egress/egress.ts';
import type { Proxy } from '../../platform/egress/egress.ts';
import { ProxyFault } from '../../platform/egress/proxy-fault.ts';
import { openTunnel } from '../../platform/egress/tunnel.ts';
import { judgeHandshake } from './evaluate/judge-tls.ts';
import { connectToEach, resolveName } from './reach.ts';
import { shakeHands } from './secure.ts';
import type { TlsNames } from './evaluate/tls-faults.ts';
import { codeOf } from './walk.ts';
import type { Finding, Surroundings, Walk } from './walk.ts';

export interface Destination {
  readonly host: string;
  readonly port: number;
  /** For TLS; undefined: none is spoken. Throws in words for people when files cannot be used. */
  readonly trust: (() => SecureContext) | undefined;
  readonly isHttp: boolean;
  /** What our client certificate is to the server. */
  readonly clientCertificate: 'none' | 'offered' | 'required';
  readonly names: TlsNames;
  /** For each step, milliseconds. */
  readonly timeoutMs: number;
}

/** The proxy that leads there, and whether it could be reached itself. */
export interface Detour {
  readonly proxy: Proxy;
  readonly isReached: Promise<boolean>;
}

/** Resolves with true when the whole way is open. */
export async function walkTo(
  walk: Walk,
  destination: Destination,
  surroundings: Surroundings,
  detour?: Detour,
): Promise<boolean> {
  const socket = await (detour === undefined
    ? openDirectly(walk, destination, surroundings)
    : openThrough(walk, destination, surroundings, detour));
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
  return (await walk.take('tls', () => secure(socket, trust, destination, surroundings))) === true;
}

async function openDirectly(
  walk: Walk,
  destination: Destination,
  { clock, signal }: Surroundings,
): Promise<Socket | undefined> {
  const place = { ...destination, setting: destination.names.address };
  const addresses = await walk.take('dns', () => resolveName(place, clock));
  if (addresses !== undefined) return walk.take('tcp', () => connectToEach(addresses, place, clock, signal));
  walk.skip(['tcp'], 'there is no address');
  return undefined;
}

async function openThrough(
  walk: Walk,
  { host, port, timeoutMs }: Destination,
  { clock, signal }: Surroundings,
  { proxy, isReached }: Detour,
): Promise<Socket | undefined> {
  const name = proxy.url.host;
  walk.skip(['dns'], `the egress proxy ${name} resolves names and connects`);
  if (!(await isReached)) {
    walk.skip(['tunnel'], `the egress proxy ${name} cannot be used`);
    return undefined;
  }
  return walk.take('tunnel', async (): Promise<Finding<Socket>> => {
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

async function secure(
  socket: Socket,
  trust: () => SecureContext,
  destination: Destination,
  { clock, signal }: Surroundings,
): Promise<Finding<true>> {
  let context: SecureContext;
  try {
    context = trust();
  } catch (error) {
    socket.destroy();
    const detail = `the files for TLS cannot be used (${codeOf(error)})`;
    return { outcome: 'fail', detail, advice: `see ${destination.names.ca} and ${destination.names.certificate}` };
  }
  const handshake = await shakeHands({ ...destination, socket, context, clock, signal });
  const verdict = judgeHandshake(handshake, { ...destination, wallNow: clock.wallNow() });
  return verdict.outcome === 'fail' ? verdict : { ...verdict, value: true };
}

/** Where a URL leads, with what is needed on the way; `names.caFile` says whose certificates are trusted. */
export function destinationOf(url: URL, rest: Omit<Destination, 'host' | 'port' | 'isHttp'>): Destination {
  return { ...addressOf(url), isHttp: true, ...rest };
}
