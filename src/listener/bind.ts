/**
 * Binds a server to its configured address: `localhost` means every loopback family of the machine on one port, a
 * `unix:` socket is created with its mode, and a stale socket file of a process that died is taken over.
 */
import { once } from 'node:events';
import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import type { Server } from 'node:http';
import net from 'node:net';

export type BindAddress =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

export interface BoundServers<S extends net.Server> {
  readonly servers: readonly S[];
  /** `http://localhost:18080` or `unix:/run/sidecar.sock`: the real port, ready to be printed. */
  readonly url: string;
}

/** Closes the servers and whatever is connected to them. */
export function closeBoundServers({ servers }: BoundServers<Server>): void {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
}

/** How often a free IPv4 port is tried anew whose IPv6 twin turns out to be taken. */
const MAX_DUAL_STACK_ATTEMPTS = 10;

export interface BindOptions {
  /** Of a socket file. Default 0o600. */
  readonly socketMode?: number;
  /** The setting that gives the address, for the words of a fault. Default: none is named. */
  readonly setting?: string;
}

/**
 * @param create makes one server; called once per address family
 * @throws Error naming the address, and the setting that gives it, when it cannot be bound
 */
export async function bind<S extends net.Server>(
  create: () => S,
  address: BindAddress,
  { socketMode = 0o600, setting }: BindOptions = {},
): Promise<BoundServers<S>> {
  try {
    if (address.kind === 'unix') return await bindUnix(create(), address.path, socketMode);
    if (address.host === 'localhost') return await bindLoopback(create, address.port);
    const server = create();
    const port = await listen(server, { host: address.host, port: address.port });
    const host = address.host.includes(':') ? `[${address.host}]` : address.host;
    return { servers: [server], url: `http://${host}:${String(port)}` };
  } catch (error) {
    const where = address.kind === 'unix' ? `unix:${address.path}` : `${address.host}:${String(address.port)}`;
    const prefix = setting === undefined ? '' : `${setting}: `;
    throw new Error(`${prefix}cannot listen on ${where}: ${describeErrorCode(readErrorCode(error))}`, { cause: error });
  }
}

/**
 * Why an address cannot be bound, found by trying; undefined when it can. A client that connects meanwhile is disconnected.
 * @param options as for `bind`
 */
export async function findBindError(address: BindAddress, options: BindOptions = {}): Promise<Error | undefined> {
  try {
    const { servers } = await bind(() => net.createServer((socket) => socket.destroy()), address, options);
    await Promise.all(servers.map((server) => once(server.close(), 'close')));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

async function bindLoopback<S extends net.Server>(create: () => S, wantedPort: number): Promise<BoundServers<S>> {
  for (let tries = 1; ; tries++) {
    const first = create();
    const port = await listen(first, { host: '127.0.0.1', port: wantedPort });
    const second = create();
    try {
      await listen(second, { host: '::1', port, ipv6Only: true });
      return { servers: [first, second], url: `http://localhost:${String(port)}` };
    } catch (error) {
      const code = readErrorCode(error);
      if (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT') {
        return { servers: [first], url: `http://localhost:${String(port)}` };
      }
      first.close();
      if (wantedPort !== 0 || code !== 'EADDRINUSE' || tries === MAX_DUAL_STACK_ATTEMPTS) throw error;
    }
  }
}

async function bindUnix<S extends net.Server>(server: S, path: string, mode: number): Promise<BoundServers<S>> {
  await removeStaleSocket(path);
  // The file must never exist with a wider mode, not even for a moment.
  const umask = process.umask(0o777 & ~mode);
  try {
    await listen(server, { path });
  } finally {
    process.umask(umask);
  }
  chmodSync(path, mode);
  return { servers: [server], url: `unix:${path}` };
}

/** @throws Error EADDRINUSE when somebody answers there, or it is not a socket */
async function removeStaleSocket(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  const probe = net.connect({ path });
  const isAnswered = found.isSocket()
    ? await once(probe, 'connect').then(
        () => true,
        () => false,
      )
    : true;
  probe.on('error', () => undefined).destroy();
  if (isAnswered) throw Object.assign(new Error('in use'), { code: 'EADDRINUSE' });
  unlinkSync(path);
}

async function listen(server: net.Server, options: net.ListenOptions): Promise<number> {
  server.listen(options);
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function readErrorCode(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'unknown';
}

function describeErrorCode(code: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return 'it is in use (EADDRINUSE); stop what listens there or choose another address';
    case 'EACCES':
      return 'permission denied, or there is no such directory (EACCES)';
    case 'ENOTFOUND':
      return 'the name does not resolve (ENOTFOUND)';
    case 'EADDRNOTAVAIL':
      return 'this machine has no such address (EADDRNOTAVAIL)';
    default:
      return code;
  }
}
