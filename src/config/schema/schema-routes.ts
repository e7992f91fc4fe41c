/**
 * The keys of an entry of `routes` or `credentials`: its own settings, and the top-level settings that it can override.
 * Both lists exist in files only.
 */
import { isForwardedMethod, plainPath } from './formats/allow-rules.ts';
import { booleanValue, list, matching } from './formats/formats.ts';
import { CLIENT_SETTINGS } from './schema-auth.ts';
import { SETTINGS, type SettingKey } from './schema.ts';
import { setting, settingWithoutDefault } from './setting.ts';

/** Keys of a file that hold entries instead of settings. */
export const LIST_KEYS = ['credentials', 'routes'] as const;
export type ListKey = (typeof LIST_KEYS)[number];

/** The name of the route and of the credential that the top-level settings describe. */
export const DEFAULT_NAME = 'default';

/** The name of a route, a credential or a group. */
const entryName = matching(/^[a-z0-9-]{1,32}$/, 'a name of 1 to 32 small letters, digits and hyphens');

/** By key, in the order of the reference. */
export const ROUTE_SETTINGS = {
  name: settingWithoutDefault(entryName, {
    doc: 'Name of the route in metrics, logs and status.',
    required: entryName.expected,
  }),
  pathPrefix: settingWithoutDefault(plainPath, {
    doc: 'The requests of the route: this path and everything below it, by whole segments. The longest matching prefix wins.',
    required: 'a path such as /quotes',
    isLive: true,
  }),
  stripPrefix: setting(booleanValue, false, {
    doc: 'Whether the prefix is removed before the path is joined to the base URL; false: the upstream sees it.',
    isLive: true,
  }),
  credential: setting(entryName, DEFAULT_NAME, {
    doc: 'The credential of its requests: a name in credentials, or default for the top-level auth.',
  }),
  methods: setting(list('a method in capitals that is forwarded', 0, isForwardedMethod), [], {
    doc: 'Methods that are forwarded; others get a 405 with Allow. Routes with the same prefix divide it by their methods, and one of them without methods gets the rest. None allows every method. No method implies another: list HEAD beside GET, and OPTIONS.',
    isLive: true,
  }),
  'throttle.group': settingWithoutDefault(entryName, {
    doc: "Routes of the same group share one throttle; their throttle and queue settings must be equal. Default: the route's own name.",
  }),
} as const;

export type RouteKey = keyof typeof ROUTE_SETTINGS;

/** Settings with one value for all routes. */
const ROUTE_INDEPENDENT_SETTINGS: readonly SettingKey[] = ['throttle.stateFile', 'retry.replayTotalBytes'];

/** Key within a route to the top-level setting of the same meaning. Settings of `upstream` have no section in a route. */
export const INHERITED_BY_ROUTES = mapLocalNames(
  /^(?:upstream\.|(?=(?:throttle|queue|request|retry)\.))/,
  (key) => !ROUTE_INDEPENDENT_SETTINGS.includes(key),
);

export const INHERITED_BY_CREDENTIALS = mapLocalNames(/^auth\./, () => true);

/** Settings that a route cannot have, with the reason. */
export const REFUSED_IN_ROUTES: ReadonlyMap<string, string> = new Map(
  ROUTE_INDEPENDENT_SETTINGS.map((key) => [key, `belongs to the top level, as ${key}: all routes share it`]),
);

function mapLocalNames(section: RegExp, isTaken: (key: SettingKey) => boolean): ReadonlyMap<string, SettingKey> {
  const keys = [...SETTINGS.keys()].filter((key) => section.test(key) && isTaken(key));
  return new Map(keys.map((key) => [key.replace(section, ''), key]));
}

/** Groups of settings that belong together: an entry that sets one of a group inherits none of the group. */
export const INHERITED_TOGETHER: readonly (readonly SettingKey[])[] = [
  ['auth.url', 'auth.issuer'],
  CLIENT_SETTINGS.map((name) => `auth.${name}` as const),
  ['auth.audience', 'auth.scope', 'auth.resource'],
  ['upstream.tlsCertificateFile', 'upstream.tlsKeyFile'],
];

/** Settings that a credential with its own authorization server still inherits: none of them belongs to the other server. */
export const INHERITED_WITH_OWN_SERVER: readonly SettingKey[] = [
  'auth.timeoutMs',
  'auth.invalidationCooldownMs',
  'auth.settleMs',
];

/** Two credentials with the same file would overwrite each other's token. */
export const NEVER_INHERITED: readonly SettingKey[] = ['auth.cacheFile'];
