/**
 * Checks that an address belongs to this machine and that a process listens on it, before a signal is sent to that process. Behind a
 * forwarded port, or in another container of a pod, the id that /status states is that of another process here. Linux lists the sockets
 * of each process in /proc.
 */
import { lookup } from 'node:dns/promises';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import type { ListenAddress } from '../../platform/host-header.ts';
import { systemErrorCode } from '../../platform/file-errors.ts';
import { isLoopbackHost } from '../../platform/loopback.ts';

const TCP_TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
const UNIX_TABLE = '/proc/net/unix';
const TCP_LISTEN = '0A';

/** Whether the process has the socket, or why that is unknown, as it is elsewhere than on Linux. */
export function findSocketOwnership(pid: number, address: ListenAddress): 'own' | 'foreign' | { unknown: string } {
  if (process.platform !== 'linux') return { unknown: 'this system has no /proc' };
  try {
    const sockets = new Set(listListeningSockets(address).map((inode) => `socket:[${inode}]`));
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).some((name) => sockets.has(readLinkOrEmpty(`${folder}/${name}`))) ? 'own' : 'foreign';
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT') return 'foreign';
    return { unknown: code === 'EACCES' ? 'it belongs to another user' : `/proc cannot be read (${code})` };
  }
}

/** The inodes of the sockets that listen on the port, or on the socket file. */
function listListeningSockets(address: ListenAddress): string[] {
  if (address.kind === 'unix') {
    const rows = readRows(UNIX_TABLE);
    return rows.filter((row) => row.slice(7).join(' ') === address.path).map((row) => row[6] ?? '');
  }
  const port = address.port.toString(16).toUpperCase().padStart(4, '0');
  const rows = TCP_TABLES.flatMap(readRows);
  const isListening = (row: readonly string[]): boolean =>
    row[3] === TCP_LISTEN && row[1]?.endsWith(`:${port}`) === true;
  return rows.filter(isListening).map((row) => row[9] ?? '');
}

/** The columns of each line. A machine without IPv6 has no table for it. */
function readRows(path: string): string[][] {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/));
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

/** A descriptor may be closed while the folder is read. */
function readLinkOrEmpty(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

const WILDCARDS = ['0.0.0.0', '::'];

/** Names are resolved; one that cannot be resolved is not of this machine. */
export async function isOnThisMachine(address: ListenAddress): Promise<boolean> {
  if (address.kind === 'unix' || isLoopbackHost(address.host) || WILDCARDS.includes(address.host)) return true;
  const own = new Set(
    Object.values(networkInterfaces()).flatMap((entries = []) => entries.map((entry) => entry.address)),
  );
  const found = await resolveHost(address.host);
  return found.length > 0 && found.every((each) => own.has(each) || isLoopbackHost(each));
}

async function resolveHost(host: string): Promise<readonly string[]> {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch {
    // The request to the admin port would fail for the same reason.
    return [];
  }
}
