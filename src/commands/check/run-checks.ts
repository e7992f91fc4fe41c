/**
 * Asks a running sidecar first, then runs all checks at once and yields their steps in a fixed order: settings and files, credentials,
 * upstreams, fleet.
 */
import { Secrets } from '../../platform/secrets.ts';
import { listProxyPasswords, type Config } from '../../config/config.ts';
import type { LoadedConfig } from '../../config/load/load.ts';
import { createProxySelector } from '../../platform/egress/proxy-selector.ts';
import { RouteHeaders } from '../../composition/route-headers.ts';
import { createRouteTable } from '../../listener/route-table.ts';
import { readClientId } from '../../token/client/secret-file.ts';
import { checkCredential } from './credential.ts';
import { checkFiles } from './checked-files.ts';
import { checkFleet } from './redis.ts';
import type { PartnerCheckContext } from './connection.ts';
import { listDeclaredLimits } from './limit-steps.ts';
import { checkRunningSidecar } from './running-sidecar.ts';
import { redactSteps } from './report.ts';
import { checkUpstream, groupByUpstream, type UpstreamProbe } from './upstream.ts';
import { formatTarget, type CheckStep, type CheckContext } from './step-runner.ts';

type CheckedConfig = Pick<LoadedConfig, 'config' | 'warnings' | 'top' | 'entries'>;

/** Yields groups of steps in order as they end, with secrets masked. */
export async function* runChecks(
  loaded: CheckedConfig,
  probePath: string | undefined,
  context: CheckContext,
): AsyncGenerator<readonly CheckStep[]> {
  const { clock } = context;
  const { config } = loaded;
  const secrets = new Secrets(clock);
  for (const password of listProxyPasswords(config.egress)) secrets.add(password);
  const headers = new RouteHeaders({ config, secrets, clock, observe: () => undefined });
  const { byRoute } = await headers.read();
  const egress = createProxySelector(config.egress);
  const check = { ...context, egress, secrets, sharedCaFile: config.routes[0].upstream.caFile };
  // Before the token requests, which may end the token of that sidecar.
  yield redactSteps(await checkRunningSidecar(config, context), secrets.mask);
  const groups = startChecks(loaded, probePath, check, byRoute);
  for (const group of groups) yield redactSteps(await group, secrets.mask);
}

function startChecks(
  loaded: CheckedConfig,
  probePath: string | undefined,
  check: PartnerCheckContext,
  ownHeaders: RouteHeaders['byRoute'],
): readonly Promise<readonly CheckStep[]>[] {
  const { credentials, routes, fleet } = loaded.config;
  const credentialChecks = new Map(credentials.map((each) => [each.name, checkCredential(each, check)]));
  const planProbe = (path: string): UpstreamProbe | undefined => {
    const match = createRouteTable(routes).match(path);
    if (match.kind !== 'matched') return undefined;
    const { route, strippedLength } = match;
    const credential = credentials.find(({ name }) => name === route.credential);
    const own = ownHeaders.get(route.name);
    const result = credentialChecks.get(route.credential);
    if (credential === undefined || own === undefined || result === undefined) return undefined;
    const isTokenFile = credential.auth.endpoint.kind === 'file';
    return { route, path, strippedLength, own, isTokenFile, token: result.then(({ token }) => token) };
  };
  const probe = probePath === undefined ? undefined : planProbe(probePath);
  return [
    checkSettings(loaded, check),
    ...[...credentialChecks.values()].map(async (result) => (await result).steps),
    ...groupByUpstream(routes).map((group) => checkUpstream(group, probe, check)),
    ...(probePath !== undefined && probe === undefined ? [Promise.resolve([createNoRouteStep(probePath)])] : []),
    ...(fleet === undefined ? [] : [checkFleet(fleet, check)]),
  ];
}

async function checkSettings(loaded: CheckedConfig, context: CheckContext): Promise<readonly CheckStep[]> {
  const { config, warnings } = loaded;
  const files = await checkFiles(loaded, context);
  const base = { step: 'configuration', target: 'settings', ms: 0 } as const;
  const warned = { ...base, outcome: 'warn', advice: 'correct or remove it' } as const;
  return [
    { ...base, outcome: 'ok', detail: 'valid' },
    ...(await listClientIds(config)),
    ...listDeclaredLimits(config, context.clock.wallNow()),
    ...warnings.map((detail) => ({ ...warned, detail })),
    ...files,
  ];
}

/** A client id is no secret, and is compared with that of the partner. A file that cannot be read is a finding of its own. */
async function listClientIds({ credentials }: Config): Promise<readonly CheckStep[]> {
  const steps = credentials.map(async ({ name, auth }): Promise<CheckStep[]> => {
    const reading = await readClientId(auth.clientId);
    if (reading.kind === 'unreadable' || auth.clientId === undefined) return [];
    const target = formatTarget('client id', name);
    return [{ step: 'configuration', target, outcome: 'ok', ms: 0, detail: reading.value }];
  });
  return (await Promise.all(steps)).flat();
}

function createNoRouteStep(path: string): CheckStep {
  const finding = { outcome: 'fail', ms: 0, advice: 'give --probe a path of a route' } as const;
  return { step: 'probe', target: 'routes', ...finding, detail: `no route matches ${path.split('?', 1)[0] ?? ''}` };
}
