/** Whether an address belongs to this machine: a process id that a server states means nothing on another one. */
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import type { ListenAddressConfig } from '../../config/config.ts';
import { isLoopbackHost } from '../../platform/loopback.ts';

const WILDCARDS = ['0.0.0.0', '::'];

/** Names are resolved; one that cannot be resolved is not of this machine. */
export async function isOnThisMachine(address: ListenAddressConfig): Promise<boolean> {
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
