/** Binds the two ports to their configured addresses; errors name the settings. */
import type { Server } from 'node:http';
import type { Config } from '../config/config.ts';
import { formatSettingName } from '../config/load/problems.ts';
import { bind, findBindError, type BoundServers } from '../listener/bind.ts';

/** @throws Error; AggregateError when the proxy port cannot be bound either, because another sidecar often has both */
export async function bindAdmin(
  create: () => Server,
  { admin, listen: { address, socketMode } }: Config,
): Promise<BoundServers<Server>> {
  try {
    return await bind(create, admin.address, { setting: formatSettingName('admin.address') });
  } catch (error) {
    const proxyError = await findBindError(address, { socketMode, setting: formatSettingName('listen.address') });
    throw proxyError === undefined ? error : new AggregateError([proxyError, error], 'neither port can be bound');
  }
}

/** @throws Error that names the setting and the address */
export function bindProxy(
  create: () => Server,
  { listen: { address, socketMode } }: Config,
): Promise<BoundServers<Server>> {
  return bind(create, address, { socketMode, setting: formatSettingName('listen.address') });
}
