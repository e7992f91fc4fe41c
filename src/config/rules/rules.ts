/**
 * Rules between settings, as a table. A rule is skipped when one of its settings is already invalid, so that one mistake makes
 * one problem.
 */
import { isDeepStrictEqual } from 'node:util';
import { isLoopbackHost } from '../../platform/loopback.ts';
import { parseListenAddress } from '../schema/formats/address.ts';
import { formatSettingName, createSettingProblem, type SettingProblem } from '../load/problems.ts';
import { isOwnListener } from '../schema/formats/proxy.ts';
import { AUTH_RULES, createEncryptionRule, exactlyOneFault, type SettingsRule } from './rules-auth.ts';
import { SETTINGS, settingOf, valueOfSetting, type SettingKey, type Settings } from '../schema/schema.ts';
import { canonicalFieldName } from '../schema/formats/credentials.ts';
import { maskUrl } from '../schema/formats/url.ts';

/** Settings with a value, or a file that holds it, but not both. */
export const VALUE_AND_FILE_KEYS: readonly (readonly [value: SettingKey, file: SettingKey])[] = [
  ...SETTINGS.keys(),
].flatMap((key) => (SETTINGS.has(`${key}File` as SettingKey) ? [[key, `${key}File` as SettingKey] as const] : []));

const RULES: readonly SettingsRule[] = [
  createEncryptionRule('upstream.baseUrl'),
  { keys: ['upstream.headers', 'upstream.tokenHeader'], fault: ({ upstream }) => headersFault(upstream) },
  { keys: ['upstream.query'], fault: ({ upstream }) => queryFault(upstream.query) },
  {
    keys: ['retry.idempotencyKey.header', 'upstream.tokenHeader', 'upstream.headers', 'listen.requiredHeader.name'],
    fault: (settings) => keyHeaderFault(settings),
  },
  ...AUTH_RULES,
  {
    keys: ['listen.requiredHeader.name', 'listen.requiredHeader.value', 'listen.requiredHeader.valueFile'],
    fault: ({ listen }) => requiredHeaderFault(listen.requiredHeader),
  },
  {
    keys: [
      'listen.address',
      'listen.requiredHeader.name',
      'listen.requiredHeader.value',
      'listen.requiredHeader.valueFile',
      'listen.allowUnauthenticatedNetwork',
    ],
    fault: ({ listen }) => exposureFault(listen),
  },
  {
    keys: ['admin.address', 'listen.address'],
    fault: ({ admin, listen }) =>
      admin.address === listen.address && !admin.address.endsWith(':0')
        ? `must differ from ${formatSettingName('listen.address')}, found ${admin.address} in both`
        : undefined,
  },
  ...(['proxy', 'httpProxy'] as const).map((name): SettingsRule => ({
    keys: [`egress.${name}`, 'listen.address', 'listen.allowedHosts'],
    fault: ({ egress, listen }) => ownProxyFault(egress[name], listen),
  })),
  {
    keys: ['throttle.maxRate', 'throttle.rate'],
    fault: ({ throttle: { rate, maxRate } }) =>
      maxRate !== null && rate !== 'auto' && maxRate < rate
        ? `found ${String(maxRate)}; expected at least ${formatSettingName('throttle.rate')}, ${String(rate)}, or only one of the two`
        : undefined,
  },
  {
    keys: ['throttle.limits', 'throttle.share'],
    fault: ({ throttle: { limits, share } }) => {
      const tooFew = limits.find(({ calls }) => calls < share);
      return tooFew === undefined
        ? undefined
        : `${tooFew.name}: found ${String(tooFew.calls)} calls; expected at least ${formatSettingName('throttle.share')}, ${String(share)}, so that each replica has one`;
    },
  },
  {
    keys: ['throttle.share', 'fleet.redisUrl', 'fleet.redisUrlFile'],
    // With declared limits it is the part of a replica that has never reached Redis.
    fault: ({ throttle: { share, limits }, fleet: { redisUrl, redisUrlFile } }) =>
      share > 1 && limits.length === 0 && (redisUrl !== null || redisUrlFile !== null)
        ? `found ${String(share)} together with ${formatSettingName(redisUrl === null ? 'fleet.redisUrlFile' : 'fleet.redisUrl')}, through which replicas already share the quota; expected 1, or only one of the two`
        : undefined,
  },
  {
    keys: ['throttle.mode', 'fleet.redisUrl', 'fleet.redisUrlFile'],
    fault: ({ throttle: { mode }, fleet: { redisUrl, redisUrlFile } }) =>
      mode === 'observe' && (redisUrl !== null || redisUrlFile !== null)
        ? `found observe together with ${formatSettingName(redisUrl === null ? 'fleet.redisUrlFile' : 'fleet.redisUrl')}: what replicas would have waited for each other is not known; expected only one of the two`
        : undefined,
  },
  {
    keys: ['fleet.redisUrl', 'fleet.redisUrlFile'],
    fault: ({ fleet }) =>
      fleet.redisUrl !== null && fleet.redisUrlFile !== null
        ? exactlyOneFault(fleet.redisUrl, fleet.redisUrlFile, 'the URL', 'fleet.redisUrlFile')
        : undefined,
  },
  {
    keys: ['shutdown.delayMs', 'shutdown.drainMs'],
    fault: ({ shutdown }) =>
      shutdown.delayMs > shutdown.drainMs
        ? `found ${String(shutdown.delayMs)}; expected at most ${formatSettingName('shutdown.drainMs')}, ${String(shutdown.drainMs)}, of which it is a part`
        : undefined,
  },
];

/**
 * One problem per broken rule; rules with a key in `wrong` are skipped.
 * @param appliesTo whether to check the rules whose first key is this one. Default: all
 */
export function findBrokenRules(
  settings: Settings,
  wrong: ReadonlySet<string>,
  appliesTo: (key: SettingKey) => boolean = () => true,
): SettingProblem[] {
  return RULES.flatMap(({ keys, fault }) => {
    const found = !appliesTo(keys[0]) || keys.some((key) => wrong.has(key)) ? undefined : fault(settings);
    return found === undefined ? [] : [createSettingProblem(keys[0], found)];
  });
}

function requiredHeaderFault(header: Settings['listen']['requiredHeader']): string | undefined {
  const valueNames = `${formatSettingName('listen.requiredHeader.value')} or ${formatSettingName('listen.requiredHeader.valueFile')}`;
  if (header.name === null && header.value === null && header.valueFile === null) return undefined;
  if (header.name === null) return `required with ${valueNames}; a field name such as X-Sidecar-Key`;
  if (header.value === null && header.valueFile === null) return `set without its value; expected ${valueNames} too`;
  return header.value !== null && header.valueFile !== null ? `set with both ${valueNames}; expected one` : undefined;
}

function headersFault({ headers, tokenHeader }: Settings['upstream']): string | undefined {
  const names = Object.keys(headers);
  const canonical = [...names, tokenHeader].map(canonicalFieldName);
  const at = names.findIndex((_, index) => canonical.includes(canonical[index] ?? '', index + 1));
  if (at < 0) return undefined;
  const isToken = canonical[at] === canonical.at(-1);
  const fault = isToken ? `is the field of ${formatSettingName('upstream.tokenHeader')}` : 'is there twice';
  return `${JSON.stringify(names[at])}: ${fault}; neither case nor "_" for "-" makes a difference`;
}

function queryFault(query: Settings['upstream']['query']): string | undefined {
  const names = Object.keys(query).map((name) => name.toLowerCase());
  const twice = names.find((name, at) => names.includes(name, at + 1));
  return twice && `${JSON.stringify(twice)}: is there twice; case makes no difference`;
}

/** A client's own field of these names is removed: its key would be lost. */
function keyHeaderFault({ retry, upstream, listen }: Settings): string | undefined {
  const { header } = retry.idempotencyKey;
  if (header === null) return undefined;
  const taken: readonly [SettingKey, readonly string[]][] = [
    ['upstream.tokenHeader', [upstream.tokenHeader]],
    ['upstream.headers', Object.keys(upstream.headers)],
    ['listen.requiredHeader.name', [listen.requiredHeader.name ?? '']],
  ];
  const owner = taken.find(([, names]) => names.map(canonicalFieldName).includes(canonicalFieldName(header)));
  return owner && `found ${header}, which is a field of ${formatSettingName(owner[0])}; expected another one`;
}

function ownProxyFault(proxy: string | null, { address, allowedHosts }: Settings['listen']): string | undefined {
  if (proxy === null || !isOwnListener(proxy, address, allowedHosts)) return undefined;
  return `found ${maskUrl(proxy)}, the sidecar's own listener (${formatSettingName('listen.address')}): it would call itself; expected another proxy, or none`;
}

function exposureFault(listen: Settings['listen']): string | undefined {
  const address = parseListenAddress(listen.address);
  const isExposed = address?.kind === 'tcp' && !isLoopbackHost(address.host);
  if (!isExposed || listen.requiredHeader.name !== null || listen.allowUnauthenticatedNetwork) return undefined;
  return `found ${listen.address}, which is not loopback: any client that reaches it would call the partner in your name; set ${formatSettingName('listen.requiredHeader.name')} and its value, or ${formatSettingName('listen.allowUnauthenticatedNetwork')} to true`;
}

const CONFIGURED_LIMITS: readonly SettingKey[] = ['throttle.rate', 'throttle.maxRate', 'throttle.limits'];

/** Warns of limits that each process keeps to for itself, where it may have replicas: in Kubernetes. One warning at most. */
export function findReplicaWarnings(
  routes: readonly { readonly settings: Settings }[],
  env: Readonly<Record<string, string | undefined>>,
): string[] {
  if (!env.KUBERNETES_SERVICE_HOST) return [];
  const alone = routes.filter(
    ({ settings: { throttle, fleet } }) => throttle.share === 1 && (fleet.redisUrl ?? fleet.redisUrlFile) === null,
  );
  const isSet = (key: SettingKey): boolean =>
    alone.some(({ settings }) => !isDeepStrictEqual(valueOfSetting(settings, key), settingOf(key).default));
  const names = CONFIGURED_LIMITS.filter(isSet);
  if (names.length === 0) return [];
  const remedies = `${formatSettingName('throttle.share')} to their number, or ${formatSettingName('fleet.redisUrlFile')}`;
  return [
    `${names.join(', ')}: for this replica alone; several together send a multiple of it, unless you set ${remedies}`,
  ];
}
