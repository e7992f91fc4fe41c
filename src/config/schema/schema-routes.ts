/**
 * What one entry of `routes` and of `credentials` may hold: settings of its own, and those it takes from the top level where it
 * has none. Both lists are for files alone: no variable can hold them.
 */
import { isForwardedMethod, isPlainPath } from './formats/allow-rules.ts';
import { format, list, matching, booleanValue } from './formats/formats.ts';
import type { Format, SettingValue } from './formats/formats.ts';
import { SETTINGS } from './schema.ts';
import type { SettingKey } from './schema.ts';

/** Keys of a file that hold entries instead of settings. */
export const LIST_KEYS = ['credentials', 'routes'] as const;
export type ListKey = (typeof LIST_KEYS)[number];

/** The name of the route and of the credential that the top-level settings describe. */
export const DEFAULT_NAME = 'default';

/** A setting that only a route has. */
export interface RouteSetting<T extends SettingValue = SettingValue> {
  readonly doc: string;
  readonly format: Format<NonNullable<T>>;
  /** null: none. */
  readonly default: T;
  /** Set when there is no doing without it: what to give, in words. */
  readonly required?: string;
}

function routeSetting<T extends SettingValue>(given: RouteSetting<T>): RouteSetting<T> {
  return given;
}

/** What names a route, a credential or a group. */
function entryName(): Format<string> {
  return matching(/^[a-z0-9-]{1,32}$/, 'a name of 1 to 32 small letters, digits and hyphens');
}

/** By key, in the order of the documentation. */
export const ROUTE_SETTINGS = {
  name: routeSetting<string | null>({
    doc: 'What metrics, logs and the status call it.',
    format: entryName(),
    default: null,
    required: 'a name of 1 to 32 small letters, digits and hyphens',
  }),
  pathPrefix: routeSetting<string | null>({
    doc: 'Which requests take it: this path and everything below it, by whole segments. The longest prefix that fits wins.',
    format: format({
      expected: 'a path such as /quotes, without a slash at its end, escapes or dot segments',
      check: (value) => typeof value === 'string' && isPlainPath(value),
    }),
    default: null,
    required: 'a path such as /quotes',
  }),
  stripPrefix: routeSetting<boolean>({
    doc: 'Whether the prefix is taken off before the path is joined to the base URL; false: the upstream sees it.',
    format: booleanValue(),
    default: false,
  }),
  credential: routeSetting<string>({
    doc: 'Which credential its requests carry: a name of credentials, or default for the top-level auth.',
    format: entryName(),
    default: DEFAULT_NAME,
  }),
  methods: routeSetting<readonly string[]>({
    doc: 'Methods that are passed on; others are answered with 405. None allows every method.',
    format: list('a method in capitals that is forwarded', 0, isForwardedMethod),
    default: [],
  }),
  'throttle.group': routeSetting<string | null>({
    doc: "Routes that name the same group share one throttle, whose throttle and queue settings must then be the same; a route's own name stands for its own.",
    format: entryName(),
    default: null,
  }),
} as const;

export type RouteKey = keyof typeof ROUTE_SETTINGS;

/** There is one of each for all routes. */
const ROUTE_INDEPENDENT_SETTINGS: readonly SettingKey[] = ['throttle.stateFile', 'retry.replayTotalBytes'];

/** Key within a route to the top-level setting of the same meaning: those of `upstream` stand without their section. */
export const INHERITED_BY_ROUTES = mapLocalNames(
  /^(?:upstream\.|(?=(?:throttle|queue|request|retry)\.))/,
  (key) => !ROUTE_INDEPENDENT_SETTINGS.includes(key),
);

/** Key within a credential to the setting of `auth` of the same meaning. */
export const INHERITED_BY_CREDENTIALS = mapLocalNames(/^auth\./, () => true);

/** What stands in a route although it is one for all. */
export const REFUSED_IN_ROUTES: ReadonlyMap<string, string> = new Map(
  ROUTE_INDEPENDENT_SETTINGS.map((key) => [key, `belongs to the top level, as ${key}: all routes share it`]),
);

function mapLocalNames(section: RegExp, isTaken: (key: SettingKey) => boolean): ReadonlyMap<string, SettingKey> {
  const keys = [...SETTINGS.keys()].filter((key) => section.test(key) && isTaken(key));
  return new Map(keys.map((key) => [key.replace(section, ''), key]));
}

/** Settings that only make sense together: an entry that gives one of them takes none of the others from the top level. */
export const INHERITED_TOGETHER: readonly (readonly SettingKey[])[] = [
  ['auth.url', 'auth.issuer'],
  [
    'auth.method',
    'auth.clientId',
    'auth.clientIdFile',
    'auth.clientSecret',
    'auth.clientSecretFile',
    'auth.basicEncoding',
    'auth.privateKeyFile',
    'auth.keyId',
    'auth.signingAlgorithm',
    'auth.assertionAudience',
    'auth.tlsCertificateFile',
    'auth.tlsKeyFile',
  ],
  ['auth.audience', 'auth.scope', 'auth.resource'],
  ['upstream.tlsCertificateFile', 'upstream.tlsKeyFile'],
];

/** What a credential with an authorization server of its own still takes from the top level: what is no secret of another server's. */
export const INHERITED_WITH_OWN_SERVER: readonly SettingKey[] = ['auth.timeoutMs', 'auth.invalidationCooldownMs'];

/** Two credentials that wrote it would take each other's token. */
export const NEVER_INHERITED: readonly SettingKey[] = ['auth.cacheFile'];
