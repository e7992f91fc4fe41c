/**
 * Binds a server to its configured address. `localhost` binds the loopback addresses of both families on one port; a `unix:` socket is
 * created with its mode, and replaces the stale socket file of a process that died.
 */
import { once } from 'node:events';
import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import type { Server } from 'node:http';
import net from 'node:net';
import { systemErrorCode } from '../platform/file-errors.ts';
import type { ListenAddress } from '../platform/host-header.ts';

export interface BoundServers<S extends net.Server> {
  readonly servers: readonly S[];
  /** `http://localhost:18080` or `unix:/run/sidecar.sock`, with the actual port. */
  readonly url: string;
}

export function closeBoundServers({ servers }: BoundServers<Server>): void {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
}

const MAX_DUAL_STACK_ATTEMPTS = 10;

export interface BindOptions {
  /** Mode of a socket file. Default 0o600. */
  readonly socketMode?: number;
  /** The setting that gives the address, for the error message. Default: no setting is named. */
  readonly setting?: string;
}

/**
 * @param create makes one server; called once per address family
 * @throws Error that names the address and its setting when it cannot be bound
 */
export async function bind<S extends net.Server>(
  create: () => S,
  address: ListenAddress,
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
    const code = systemErrorCode(error);
    throw new Error(`${prefix}cannot listen on ${where}: ${BIND_FAULTS[code] ?? code}`, { cause: error });
  }
}

/** Tries to bind an address: the error of `bind`, or undefined. A client that connects meanwhile is disconnected. */
export async function findBindError(address: ListenAddress, options: BindOptions = {}): Promise<Error | undefined> {
  try {
    const { servers } = await bind(() => net.createServer((socket) => socket.destroy()), address, options);
    await Promise.all(servers.map((server) => once(server.close(), 'close')));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

async function bindLoopback<S extends net.Server>(create: () => S, wantedPort: number): Promise<BoundServers<S>> {
  for (let attempt = 1; ; attempt++) {
    const ipv4 = create();
    const port = await listen(ipv4, { host: '127.0.0.1', port: wantedPort });
    const ipv6 = create();
    try {
      await listen(ipv6, { host: '::1', port, ipv6Only: true });
      return { servers: [ipv4, ipv6], url: `http://localhost:${String(port)}` };
    } catch (error) {
      const code = systemErrorCode(error);
      if (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT')
        return { servers: [ipv4], url: `http://localhost:${String(port)}` };
      ipv4.close();
      if (wantedPort !== 0 || code !== 'EADDRINUSE' || attempt === MAX_DUAL_STACK_ATTEMPTS) throw error;
    }
  }
}

async function bindUnix<S extends net.Server>(server: S, path: string, mode: number): Promise<BoundServers<S>> {
  await removeStaleSocket(path);
  // The umask keeps the file from existing with a wider mode until chmod.
  const umask = process.umask(0o777 & ~mode);
  try {
    await listen(server, { path });
  } finally {
    process.umask(umask);
  }
  chmodSync(path, mode);
  return { servers: [server], url: `unix:${path}` };
}

/** @throws Error EADDRINUSE when the file is not a socket, or a process listens on it */
async function removeStaleSocket(path: string): Promise<void> {
  const file = lstatSync(path, { throwIfNoEntry: false });
  if (file === undefined) return;
  if (!file.isSocket() || (await canConnect(path))) throw Object.assign(new Error('in use'), { code: 'EADDRINUSE' });
  unlinkSync(path);
}

async function canConnect(path: string): Promise<boolean> {
  const socket = net.connect({ path });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function listen(server: net.Server, options: net.ListenOptions): Promise<number> {
  server.listen(options);
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

const BIND_FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'it is in use (EADDRINUSE); stop what listens there or choose another address',
  EACCES: 'permission denied, or there is no such directory (EACCES)',
  ENOTFOUND: 'the name does not resolve (ENOTFOUND)',
  EADDRNOTAVAIL: 'this machine has no such address (EADDRNOTAVAIL)',
};
