/**
 * Rules that tie settings to each other, as a table. Each names the settings it looks at and is passed over when one
 * of them is wrong by itself, so that one mistake makes one problem.
 */
import { isLoopbackHost, parseListenAddress } from './address.ts';
import type { ConfigProblem } from './config.ts';
import { nameOf, problemOf } from './problems.ts';
import type { SettingKey, Settings } from './schema.ts';
import { isInsecure } from './url.ts';

interface Rule {
  /** The settings looked at; the problem is put to the first. */
  readonly keys: readonly [SettingKey, ...SettingKey[]];
  readonly fault: (settings: Settings) => string | undefined;
}

/** Settings that may be given in place or in a file, not both. */
export const FILE_TWINS: readonly (readonly [value: SettingKey, file: SettingKey])[] = [
  ['auth.clientId', 'auth.clientIdFile'],
  ['auth.clientSecret', 'auth.clientSecretFile'],
  ['listen.requiredHeader.value', 'listen.requiredHeader.valueFile'],
];

const INSECURE = `http: is accepted for loopback hosts only, since anyone on the way could read what is sent; use https:, or set ${nameOf('allowInsecureHttp')} to true`;

const RULES: readonly Rule[] = [
  {
    keys: ['upstream.baseUrl', 'allowInsecureHttp'],
    fault: ({ upstream, allowInsecureHttp }) =>
      upstream.baseUrl !== null && isInsecure(upstream.baseUrl) && !allowInsecureHttp ? INSECURE : undefined,
  },
  {
    keys: ['auth.url', 'allowInsecureHttp'],
    fault: ({ auth, allowInsecureHttp }) =>
      auth.url !== null && isInsecure(auth.url) && !allowInsecureHttp ? INSECURE : undefined,
  },
  {
    keys: ['auth.clientId', 'auth.clientIdFile'],
    fault: ({ auth }) => exactlyOne(auth.clientId, auth.clientIdFile, 'the client id', 'auth.clientIdFile'),
  },
  {
    keys: ['auth.clientSecret', 'auth.clientSecretFile'],
    fault: ({ auth }) =>
      exactlyOne(auth.clientSecret, auth.clientSecretFile, 'the client secret', 'auth.clientSecretFile'),
  },
  {
    keys: ['auth.audience', 'auth.scope'],
    fault: ({ auth }) =>
      auth.audience === null && auth.scope === null
        ? `required; the audience to ask a token for, or scopes in ${nameOf('auth.scope')}, or both`
        : undefined,
  },
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
        ? `must differ from ${nameOf('listen.address')}, found ${admin.address} in both`
        : undefined,
  },
  {
    keys: ['fleet.redisUrl'],
    fault: ({ fleet }) =>
      fleet.redisUrl === null ? undefined : 'sharing one quota across replicas is not built yet: leave it unset',
  },
  {
    keys: ['shutdown.delayMs', 'shutdown.drainMs'],
    fault: ({ shutdown }) =>
      shutdown.delayMs > shutdown.drainMs
        ? `found ${String(shutdown.delayMs)}; expected at most ${nameOf('shutdown.drainMs')}, ${String(shutdown.drainMs)}, of which it is a part`
        : undefined,
  },
];

/** One problem for each rule that is broken; rules over a key in `wrong` are passed over. */
export function findBrokenRules(settings: Settings, wrong: ReadonlySet<string>): ConfigProblem[] {
  return RULES.flatMap(({ keys, fault }) => {
    const found = keys.some((key) => wrong.has(key)) ? undefined : fault(settings);
    return found === undefined ? [] : [problemOf(keys[0], found)];
  });
}

function exactlyOne(value: string | null, file: string | null, what: string, fileKey: SettingKey): string | undefined {
  if (value === null && file === null) return `required; ${what}, or the file that holds it in ${nameOf(fileKey)}`;
  if (value !== null && file !== null) return `set together with ${nameOf(fileKey)}; expected only one of the two`;
  return undefined;
}

function requiredHeaderFault(header: Settings['listen']['requiredHeader']): string | undefined {
  const valueNames = `${nameOf('listen.requiredHeader.value')} or ${nameOf('listen.requiredHeader.valueFile')}`;
  if (header.name === null && header.value === null && header.valueFile === null) return undefined;
  if (header.name === null) return `required with ${valueNames}; a field name such as X-Sidecar-Key`;
  if (header.value === null && header.valueFile === null) return `set without its value; expected ${valueNames} too`;
  return header.value !== null && header.valueFile !== null ? `set with both ${valueNames}; expected one` : undefined;
}

function exposureFault(listen: Settings['listen']): string | undefined {
  const address = parseListenAddress(listen.address);
  const isExposed = address?.kind === 'tcp' && !isLoopbackHost(address.host);
  if (!isExposed || listen.requiredHeader.name !== null || listen.allowUnauthenticatedNetwork) return undefined;
  return `found ${listen.address}, which is not loopback: whoever reaches it would call the partner in your name; set ${nameOf('listen.requiredHeader.name')} and its value, or ${nameOf('listen.allowUnauthenticatedNetwork')} to true`;
}
