/** Secrets that stand in the configuration itself and belong to no part, for the commands that mask them in what they print. */
import type { Config } from '../config/config.ts';

/** The passwords of forward proxies, decoded. */
export function listProxyPasswords({ proxy, httpProxy }: Config['egress']): readonly string[] {
  return [proxy, httpProxy].flatMap((url) => (url ? [decodeURIComponent(url.password)] : []));
}
