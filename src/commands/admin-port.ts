/** Where the admin port of a running sidecar is reached, for commands that ask it. */
import type { ListenAddressConfig } from '../config/config.ts';

/** Options for an HTTP request. A sidecar that listens on all addresses is reached by the loopback one. */
export function toConnectTarget(
  address: ListenAddressConfig,
): { readonly socketPath: string } | { readonly host: string; readonly port: number } {
  if (address.kind === 'unix') return { socketPath: address.path };
  const { host, port } = address;
  if (host === 'localhost' || host === '0.0.0.0') return { host: '127.0.0.1', port };
  return { host: host === '::' ? '::1' : host, port };
}
