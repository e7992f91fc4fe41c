/**
 * What the environment says of proxies to every program: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, also in small letters, which win.
 * Settings of our own, from the file or the environment, win over them.
 */
import { truncate } from './problems.ts';
import { noProxyEntryFault, PROXY_OFF } from '../schema/formats/proxy.ts';
import type { SettingKey } from '../schema/schema.ts';
import type { RawValue, ConfigSource } from './sources.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy settings that the environment implies. Entries of NO_PROXY that are not understood are left out with a warning.
 * @param own the settings that were given
 */
export function readAmbientProxies(
  env: Environment,
  own: ReadonlyMap<SettingKey, RawValue>,
): Pick<ConfigSource, 'given' | 'warnings'> {
  const given = new Map<SettingKey, RawValue>();
  const warnings: string[] = [];
  const take = (key: SettingKey, name: string, read: (text: string, variable: string) => unknown): void => {
    const variable = [name.toLowerCase(), name].find((candidate) => (env[candidate] ?? '') !== '');
    if (own.has(key) || variable === undefined) return;
    given.set(key, { value: read(env[variable] ?? '', variable), origin: `environment ${variable}` });
  };
  if (!own.has('egress.proxy')) {
    take('egress.proxy', 'HTTPS_PROXY', (text) => text);
    take('egress.httpProxy', 'HTTP_PROXY', (text) => text);
    // By custom HTTPS_PROXY is not for http: destinations.
    if (given.has('egress.proxy') && !given.has('egress.httpProxy') && !own.has('egress.httpProxy'))
      given.set('egress.httpProxy', { value: PROXY_OFF, origin: 'environment, HTTP_PROXY not set' });
  }
  take('egress.noProxy', 'NO_PROXY', (text, variable) => {
    const entries = text.split(/[\s,]+/).filter((entry) => entry !== '');
    const unknown = entries.filter((entry) => noProxyEntryFault(entry) !== undefined);
    for (const entry of unknown)
      warnings.push(`${variable}: the entry ${JSON.stringify(truncate(entry))} is not understood here, and ignored`);
    return entries.filter((entry) => !unknown.includes(entry));
  });
  return { given, warnings };
}
