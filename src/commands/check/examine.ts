/**
 * The story of a check: everything is looked at together, and told in the order in which a token comes to the upstream: settings and
 * files, the egress proxy, credentials, upstreams, and what replicas share. Nothing is printed here.
 */
import type { Config } from '../../config/config.ts';
import { createEgress } from '../../platform/egress/egress.ts';
import { checkCredential } from './credential.ts';
import { checkFiles } from './files.ts';
import { checkFleet } from './fleet.ts';
import { checkProxies } from './proxies.ts';
import { withholdFrom } from './report.ts';
import { checkUpstream, groupByUpstream, routeFor } from './upstream.ts';
import type { Probe } from './upstream.ts';
import type { Step, Surroundings } from './walk.ts';

/** A configuration that is valid, and what loading it warned of. */
export interface Examined {
  readonly config: Config;
  readonly warnings: readonly string[];
}

const SHORTEST_EXTRA_SECRET = 8;

/** Steps as they are done, in order; without what is known to be secret. */
export async function* examine(
  { config, warnings }: Examined,
  probePath: string | undefined,
  surroundings: Surroundings,
): AsyncGenerator<readonly Step[]> {
  const secrets = secretsIn(config);
  for (const group of begin(config, warnings, probePath, surroundings, (secret) => secrets.add(secret)))
    yield (await group).map((step) => withholdFrom(step, secrets));
}

function begin(
  config: Config,
  warnings: readonly string[],
  probePath: string | undefined,
  surroundings: Surroundings,
  withhold: (secret: string) => void,
): readonly Promise<readonly Step[]>[] {
  const { credentials, routes, fleet } = config;
  const egress = createEgress(config.egress);
  const isProxied = destinationsOf(config).some((url) => egress(url) !== undefined);
  const proxies = checkProxies(config.egress, isProxied, surroundings);
  const check = { ...surroundings, egress, proxies, withhold };
  const checked = credentials.map((credential) => ({ credential, result: checkCredential(credential, check) }));
  const probe = probePath === undefined ? undefined : planProbe(probePath);
  return [
    checkSettings(config, warnings, surroundings),
    proxies.steps,
    ...checked.map(async ({ result }) => (await result).steps),
    ...groupByUpstream(routes).map((group) => checkUpstream(group, probe, check)),
    ...(probePath !== undefined && probe === undefined ? [Promise.resolve([noRoute(probePath)])] : []),
    ...(fleet === undefined ? [] : [checkFleet(fleet, surroundings, withhold)]),
  ];

  function planProbe(path: string): Probe | undefined {
    const route = routeFor(routes, path);
    const used = checked.find(({ credential }) => credential.name === route?.credential);
    if (route === undefined || used === undefined) return undefined;
    return { route, path, token: used.result.then(({ token }) => token) };
  }
}

async function checkSettings(
  config: Config,
  warnings: readonly string[],
  surroundings: Surroundings,
): Promise<readonly Step[]> {
  const files = await checkFiles(config, warnings, surroundings);
  const base = { step: 'configuration', target: 'settings', ms: 0 } as const;
  const odd = files.rest.map((detail): Step => ({ ...base, outcome: 'warn', detail, advice: 'mend or remove it' }));
  return [{ ...base, outcome: 'ok', detail: 'valid' }, ...odd, ...files.steps];
}

function noRoute(path: string): Step {
  const detail = `no route takes ${path.split('?', 1)[0] ?? ''}`;
  return {
    step: 'probe',
    target: 'routes',
    outcome: 'fail',
    ms: 0,
    detail,
    advice: 'give --probe a path of one of them',
  };
}

/** Those that are known before anything is asked. */
function destinationsOf({ credentials, routes }: Config): readonly URL[] {
  return [
    ...credentials.map(({ auth: { endpoint } }) => (endpoint.kind === 'url' ? endpoint.url : new URL(endpoint.issuer))),
    ...routes.map(({ upstream }) => upstream.baseUrl),
  ];
}

function secretsIn({ egress, credentials }: Config): Set<string> {
  const passwords = [egress.proxy, egress.httpProxy].flatMap((url) => (url === undefined ? [] : [url.password]));
  const given = credentials.flatMap(({ auth }) => [
    ...Object.values(auth.extraParameters),
    ...Object.values(auth.extraHeaders),
  ]);
  // Shorter ones are words such as `true`, which stand in other words too.
  const secrets = given.filter(({ length }) => length >= SHORTEST_EXTRA_SECRET);
  return new Set([...passwords, ...passwords.map(decodeURIComponent), ...secrets].filter((text) => text !== ''));
}
