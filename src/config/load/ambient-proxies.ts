/**
 * Reads the proxy variables that all programs share: HTTPS_PROXY, HTTP_PROXY and NO_PROXY. Lower-case names win over upper-case
 * ones, and the sidecar's own settings win over both. One that names the sidecar itself is meant for its application, and ignored.
 */
import { parseNoProxyEntry } from '../../platform/egress/no-proxy.ts';
import { truncate, type RawValue } from './problems.ts';
import { isOwnListener, PROXY_OFF } from '../schema/formats/proxy.ts';
import { isTextList } from '../schema/formats/formats.ts';
import { listen } from '../schema/schema-inbound.ts';
import type { SettingKey } from '../schema/schema.ts';
import type { ConfigSource } from './sources.ts';

/**
 * The proxy settings that these variables imply. Unknown entries of NO_PROXY are dropped with a warning.
 * @param own the settings from the file and from SIDECAR_ variables
 */
export function readAmbientProxies(
  env: Readonly<Record<string, string | undefined>>,
  own: ReadonlyMap<SettingKey, RawValue>,
): Pick<ConfigSource, 'given' | 'warnings'> {
  const given = new Map<SettingKey, RawValue>();
  const warnings: string[] = [];
  // Neither is checked yet; an invalid address names no listener.
  const address = own.get('listen.address')?.value ?? listen.address.default;
  const hosts = own.get('listen.allowedHosts')?.value;
  const hostNames = isTextList(hosts) ? hosts : [];
  const namesSidecar = (variable: string): boolean => {
    const found = isOwnListener(env[variable] ?? '', typeof address === 'string' ? address : '', hostNames);
    if (found)
      warnings.push(
        `${variable} names the sidecar's own listener, and is ignored: it is for the application; for a proxy between sidecar and partner set SIDECAR_EGRESS_PROXY (egress.proxy)`,
      );
    return found;
  };
  const take = (key: SettingKey, name: string, read: (text: string, variable: string) => unknown): void => {
    if (own.has(key)) return;
    const variable = [name.toLowerCase(), name].find((each) => (env[each] ?? '') !== '' && !namesSidecar(each));
    if (variable === undefined) return;
    given.set(key, { value: read(env[variable] ?? '', variable), origin: `environment ${variable}` });
  };
  if (!own.has('egress.proxy')) {
    take('egress.proxy', 'HTTPS_PROXY', (text) => text);
    take('egress.httpProxy', 'HTTP_PROXY', (text) => text);
    // By convention HTTPS_PROXY does not apply to http: destinations.
    if (given.has('egress.proxy') && !given.has('egress.httpProxy') && !own.has('egress.httpProxy'))
      given.set('egress.httpProxy', { value: PROXY_OFF, origin: 'environment, HTTP_PROXY not set' });
  }
  take('egress.noProxy', 'NO_PROXY', (text, variable) => {
    const entries = text.split(/[\s,]+/).filter((entry) => entry !== '');
    const unknown = entries.filter((entry) => parseNoProxyEntry(entry) === undefined);
    for (const entry of unknown)
      warnings.push(`${variable}: the entry ${JSON.stringify(truncate(entry))} is not understood here, and ignored`);
    return entries.filter((entry) => !unknown.includes(entry));
  });
  return { given, warnings };
}
