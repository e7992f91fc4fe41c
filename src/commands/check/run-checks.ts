/**
 * The story of a check: everything is looked at together, and told in the order in which a token comes to the upstream: settings and
 * files, the egress proxy, credentials, upstreams, and what replicas share. Nothing is printed here.
 */
import type { Config } from '../../config/config.ts';
import { createProxySelector } from '../../platform/egress/proxy-selector.ts';
import { listExtraSecrets, listProxyPasswords } from '../configured-secrets.ts';
import { checkCredential } from './credential.ts';
import { checkFiles } from './files.ts';
import { checkFleet } from './fleet.ts';
import { checkProxies } from './proxies.ts';
import { redactSteps } from './report.ts';
import { checkUpstream, groupByUpstream, findRoute } from './upstream.ts';
import type { UpstreamProbe } from './upstream.ts';
import type { CheckStep, CheckContext } from './step-runner.ts';

/** A configuration that is valid, and what loading it warned of. */
export interface CheckedConfig {
  readonly config: Config;
  readonly warnings: readonly string[];
}

/** Steps as they are done, in order; without what is known to be secret. */
export async function* runChecks(
  { config, warnings }: CheckedConfig,
  probePath: string | undefined,
  surroundings: CheckContext,
): AsyncGenerator<readonly CheckStep[]> {
  const secrets = new Set([
    ...listProxyPasswords(config.egress),
    ...config.credentials.flatMap(({ auth }) => listExtraSecrets(auth)),
  ]);
  for (const group of startChecks(config, warnings, probePath, surroundings, (secret) => secrets.add(secret)))
    yield redactSteps(await group, secrets);
}

function startChecks(
  config: Config,
  warnings: readonly string[],
  probePath: string | undefined,
  surroundings: CheckContext,
  withhold: (secret: string) => void,
): readonly Promise<readonly CheckStep[]>[] {
  const { credentials, routes, fleet } = config;
  const egress = createProxySelector(config.egress);
  const isProxied = listDestinations(config).some((url) => egress(url) !== undefined);
  const proxies = checkProxies(config.egress, isProxied, surroundings);
  const check = { ...surroundings, egress, proxies, withhold };
  const checked = credentials.map((credential) => ({ credential, result: checkCredential(credential, check) }));
  const probe = probePath === undefined ? undefined : planProbe(probePath);
  return [
    checkSettings(config, warnings, surroundings),
    proxies.steps,
    ...checked.map(async ({ result }) => (await result).steps),
    ...groupByUpstream(routes).map((group) => checkUpstream(group, probe, check)),
    ...(probePath !== undefined && probe === undefined ? [Promise.resolve([createNoRouteStep(probePath)])] : []),
    ...(fleet === undefined ? [] : [checkFleet(fleet, surroundings, withhold)]),
  ];

  function planProbe(path: string): UpstreamProbe | undefined {
    const route = findRoute(routes, path);
    const used = checked.find(({ credential }) => credential.name === route?.credential);
    if (route === undefined || used === undefined) return undefined;
    return { route, path, token: used.result.then(({ token }) => token) };
  }
}

async function checkSettings(
  config: Config,
  warnings: readonly string[],
  surroundings: CheckContext,
): Promise<readonly CheckStep[]> {
  const files = await checkFiles(config, warnings, surroundings);
  const base = { step: 'configuration', target: 'settings', ms: 0 } as const;
  const odd = files.rest.map((detail): CheckStep => ({
    ...base,
    outcome: 'warn',
    detail,
    advice: 'mend or remove it',
  }));
  return [{ ...base, outcome: 'ok', detail: 'valid' }, ...odd, ...files.steps];
}

function createNoRouteStep(path: string): CheckStep {
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
function listDestinations({ credentials, routes }: Config): readonly URL[] {
  return [
    ...credentials.map(({ auth: { endpoint } }) => (endpoint.kind === 'url' ? endpoint.url : new URL(endpoint.issuer))),
    ...routes.map(({ upstream }) => upstream.baseUrl),
  ];
}
