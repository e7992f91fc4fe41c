/** Secrets that stand in the configuration itself, for the commands that mask them in what they print. */
import type { AuthConfig, Config } from '../config/config.ts';
import { isExtraSecret } from '../token/client/secret-file.ts';

/** The passwords of forward proxies, decoded. */
export function listProxyPasswords({ proxy, httpProxy }: Config['egress']): readonly string[] {
  return [proxy, httpProxy]
    .flatMap((url) => (url ? [decodeURIComponent(url.password)] : []))
    .filter((text) => text !== '');
}

export function listExtraSecrets({ extraParameters, extraHeaders }: AuthConfig): readonly string[] {
  const values = [...Object.values(extraParameters), ...Object.values(extraHeaders)];
  return values.flatMap((one) => (one.kind === 'value' && isExtraSecret(one, one.value) ? [one.value] : []));
}
