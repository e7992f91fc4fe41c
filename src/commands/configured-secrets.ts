/** Secrets that stand in the configuration itself, for the commands that mask them in what they print. */
import type { AuthConfig, Config } from '../config/config.ts';

/** Shorter values of extra fields are words such as `true`: masking them would garble every line. */
const MIN_EXTRA_SECRET_LENGTH = 8;

/** The passwords of forward proxies, decoded. */
export function listProxyPasswords({ proxy, httpProxy }: Config['egress']): readonly string[] {
  return [proxy, httpProxy]
    .flatMap((url) => (url ? [decodeURIComponent(url.password)] : []))
    .filter((text) => text !== '');
}

/** How many secrets may be in use at the same time, without the passwords of forward proxies and Redis. */
export function countSecretsInUse({ credentials, routes }: Pick<Config, 'credentials' | 'routes'>): number {
  const maps = [
    ...credentials.flatMap(({ auth }) => [auth.extraParameters, auth.extraHeaders]),
    ...routes.map(({ upstream }) => upstream.headers),
  ];
  return maps.reduce((count, map) => count + Object.keys(map).length, credentials.length);
}

/** The values of `auth.extraParameters` and `auth.extraHeaders`. */
export function listExtraSecrets({ extraParameters, extraHeaders }: AuthConfig): readonly string[] {
  const values = [...Object.values(extraParameters), ...Object.values(extraHeaders)];
  return values.flatMap((one) =>
    one.kind === 'value' && one.value.length >= MIN_EXTRA_SECRET_LENGTH ? [one.value] : [],
  );
}
