/**
 * The convict schema: every setting with its doc, format, default and environment variable, as a tree and as a map.
 * config/reference.md is generated from it.
 */
import convict from 'convict';
import { isJsonObject } from '../../token/endpoint/json-object.ts';
import type { SettingMap, SettingValue } from './formats/formats.ts';
import * as authorization from './schema-auth.ts';
import * as inbound from './schema-inbound.ts';
import * as outbound from './schema-outbound.ts';
import * as pacing from './schema-throttle.ts';
import type { Setting, SettingDefinition, SettingTreeKeys, SettingTreeValues } from './setting.ts';

const schema = {
  upstream: outbound.upstream,
  auth: authorization.auth,
  egress: authorization.egress,
  listen: inbound.listen,
  admin: inbound.admin,
  throttle: pacing.throttle,
  queue: pacing.queue,
  request: outbound.request,
  response: inbound.response,
  retry: outbound.retry,
  unknownCalls: outbound.unknownCalls,
  fleet: pacing.fleet,
  shutdown: inbound.shutdown,
  log: inbound.log,
  metrics: inbound.metrics,
  allowInsecureHttp: inbound.allowInsecureHttp,
};

export type SettingKey = SettingTreeKeys<typeof schema>;

/** The values of all settings, each valid by itself. */
export type Settings = SettingTreeValues<typeof schema>;

export const VARIABLE_PREFIX = 'SIDECAR_';

/** The JSON Schema of a configuration file, below the folder of the package. */
export const JSON_SCHEMA_PATH = 'config/schema.json';

export const CONFIG_VARIABLE = 'SIDECAR_CONFIG';

/** Every setting by its dotted key, in the order of the reference. */
export const SETTINGS: ReadonlyMap<SettingKey, Setting> = new Map(listSettingsIn(schema, ''));

function* listSettingsIn(node: object, prefix: string): Generator<[SettingKey, Setting]> {
  for (const [name, child] of Object.entries(node) as [string, object][]) {
    const key = `${prefix}${name}`;
    if (isSetting(child)) yield [key as SettingKey, { ...child, env: child.env ?? variableOfPath(key) }];
    else yield* listSettingsIn(child, `${key}.`);
  }
}

function isSetting(node: object): node is SettingDefinition {
  return 'doc' in node;
}

/** Settings of earlier versions, each with what its problem says. */
export const REMOVED_SETTINGS: ReadonlyMap<string, string> = new Map([
  ['admin.allowLogLevel', 'is gone; set log.level in the configuration file and reload it (SIGHUP)'],
  ['response.serverTiming', 'is gone; traces have the times of one request, the metrics those of all'],
]);

/** The variable of a key, for settings without a shorter one: `SIDECAR_AUTH_TOKEN_PATH` of `auth.tokenPath`. */
export function variableOfPath(key: string): string {
  return `${VARIABLE_PREFIX}${key.replaceAll(/(?=[A-Z])|\./g, '_').toUpperCase()}`;
}

/** @throws Error when there is no such setting */
export function settingOf(key: SettingKey): Setting {
  const found = SETTINGS.get(key);
  if (found === undefined) throw new Error(`no such setting: ${key}`);
  return found;
}

/**
 * Adds the schema's defaults.
 * @throws Error of convict when a value is invalid; callers check each value first, with better messages
 */
export function completeSettings(values: Iterable<readonly [SettingKey, SettingValue]>): Settings {
  // convict does not read environment and arguments strictly, so it gets none.
  const store = convict<Settings>(schema, { env: {}, args: [] });
  const maps: [SettingKey, SettingMap][] = [];
  for (const [key, value] of values) {
    // convict would read a dot in a name as a path.
    if (isJsonObject(value)) maps.push([key, value]);
    else store.set<string>(key, value);
  }
  const settings = store.validate({ allowed: 'strict' }).getProperties();
  for (const [key, map] of maps) {
    const path = key.split('.');
    Object.assign(nodeAt(settings, path.slice(0, -1)) as object, { [path.at(-1) ?? '']: map });
  }
  return settings;
}

export function valueOfSetting(settings: Settings, key: SettingKey): SettingValue {
  return nodeAt(settings, key.split('.')) as SettingValue;
}

function nodeAt(settings: Settings, path: readonly string[]): unknown {
  return path.reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], settings);
}
