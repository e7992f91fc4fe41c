/** Binds the two ports to their configured addresses, with faults that name the settings. */
import type { Server } from 'node:http';
import type { Config } from '../config/config.ts';
import { formatSettingName } from '../config/load/problems.ts';
import { bind, findBindError, type BoundServers } from '../listener/bind.ts';

/** @throws AggregateError when the proxy port cannot be had either: the two are mostly taken by another sidecar, and moved together */
export async function bindAdmin(
  create: () => Server,
  { admin, listen: { address, socketMode } }: Config,
): Promise<BoundServers<Server>> {
  try {
    return await bind(create, admin.address, { setting: formatSettingName('admin.address') });
  } catch (error) {
    const fault = await findBindError(address, { socketMode, setting: formatSettingName('listen.address') });
    throw fault === undefined ? error : new AggregateError([fault, error], 'neither port can be had');
  }
}

/** @throws Error in words for people */
export function bindProxy(
  create: () => Server,
  { listen: { address, socketMode } }: Config,
): Promise<BoundServers<Server>> {
  return bind(create, address, { socketMode, setting: formatSettingName('listen.address') });
}
