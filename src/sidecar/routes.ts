/**
 * Builds what the configured routes are made of: one token source for each credential, one throttle for each group, one pool of
 * connections for each origin that is reached in the same way, and the routes that tie these together.
 */
import type { Clock, Random } from '../platform/clock.ts';
import type { Config, RouteConfig, UpstreamConfig } from '../config/config.ts';
import { createProxySelector, type ProxySelector } from '../platform/egress/proxy-selector.ts';
import { ResponseClassifier } from '../exchange/response-classifier.ts';
import { ReplayMemory } from '../exchange/request-body/replay-body.ts';
import type { Route } from '../listener/request-admission.ts';
import type { RouteTable } from '../listener/route-table.ts';
import { createUpgradeHandler } from '../listener/websocket/websocket.ts';
import { createRetryBudget } from '../retry/budget.ts';
import type { EventObserver } from '../telemetry/events.ts';
import { createThrottle } from '../throttle/queue/queueing-throttle.ts';
import type { FleetMembership } from '../throttle/fleet-membership.ts';
import type { LearnedState, RateSettings, Throttle, ThrottleTerms } from '../throttle/throttle.ts';
import { createTlsContextProvider, type TlsContextProvider } from '../platform/tls.ts';
import type { TokenSource } from '../token/token.ts';
import { createUpstream, type Upstream } from '../upstream/client.ts';
import type { Budgets } from './budgets.ts';
import type { FleetParts } from './fleet.ts';
import { createReloadableRouteTable, type PersistentRouteParts } from './reloadable-route-table.ts';
import { divideAmongReplicas } from './replica-share.ts';
import { createTokens, type RedactValue } from './tokens.ts';

export interface RoutesOptions {
  readonly config: Config;
  /** Where replicas share tokens and quotas; undefined: this process is alone. */
  readonly sharing: FleetParts | undefined;
  /** What an earlier process had learned, by throttle group. */
  readonly restored: ReadonlyMap<string, LearnedState>;
  readonly redactValue: RedactValue;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
  /** What request bodies may take, however large `retry.replayTotalBytes` is. */
  readonly budgets: Pick<Budgets, 'replayTotalBytes'>;
}

/** Everything that requests pass, nothing of it started. */
export interface RunningRoutes {
  readonly table: RouteTable<Route>;
  /** By credential. */
  readonly tokens: ReadonlyMap<string, TokenSource>;
  /** By group. */
  readonly throttles: ReadonlyMap<string, Throttle>;
  /**
   * Takes over what is live of a configuration that differs in nothing else. Requests under way keep the settings that they began
   * with, but for the throttle's.
   */
  readonly reconfigure: (config: Config) => void;
  /** Closes every connection to an upstream, whatever is under way. */
  closeUpstreams(): Promise<void>;
}

export function createRoutes(options: RoutesOptions): RunningRoutes {
  const { config, clock, random, observe } = options;
  const egress = createProxySelector(config.egress);
  const tokens = createTokenSources(options, egress);
  const throttles = createThrottles(options);
  const upstreams = createUpstreams(config, egress, options);
  const memory = new ReplayMemory(computeReplayBytes(config, options));
  const lasting = new Map(
    config.routes.map((route): [string, PersistentRouteParts] => {
      const { name, credential, throttleGroup, throttle, upstream } = route;
      const { trust, client } = requireDefined(upstreams.get(createPoolKey(upstream)));
      const parts = {
        ...{ clock, random, observe, memory },
        tokens: requireDefined(tokens.get(credential)),
        throttle: requireDefined(throttles.get(throttleGroup)),
        responseClassifier: new ResponseClassifier({ route: name, replicas: throttle.share, clock, observe }),
        upstream: { ...client, baseUrl: upstream.baseUrl },
        retryBudget: createRetryBudget(),
        serveUpgrade: upstream.websocket ? createUpgradeHandler(trust, egress) : undefined,
      };
      return [name, parts];
    }),
  );
  const { table, rebuild } = createReloadableRouteTable(config, lasting);
  return {
    table,
    tokens,
    throttles,
    reconfigure: (next) => {
      // Connections before those who will use them.
      for (const [way, { client }] of upstreams) client.resize(computeMaxConnections(next.routes, way));
      memory.resize(computeReplayBytes(next, options));
      rebuild(next);
      for (const [group, terms] of readThrottleTerms(next)) requireDefined(throttles.get(group)).reconfigure(terms);
    },
    closeUpstreams: async () => {
      await Promise.all([...upstreams.values()].map(({ client }) => client.close()));
    },
  };
}

function computeReplayBytes({ routes: [{ retry }] }: Config, { budgets }: RoutesOptions): number {
  return Math.min(retry.replayTotalBytes, budgets.replayTotalBytes);
}

function createTokenSources(
  { config, sharing, redactValue, clock, random, observe }: RoutesOptions,
  egress: ProxySelector,
): Map<string, TokenSource> {
  const common = { egress, tokenStore: sharing?.tokenStore, redactValue, clock, random, observe };
  return new Map(
    config.credentials.map(({ name, auth }) => [name, createTokens({ ...common, credential: name, auth })]),
  );
}

/** The first route of each group, whose settings are those of all. */
export function findThrottleGroups({ routes }: Config): ReadonlyMap<string, RouteConfig> {
  const groups = new Map<string, RouteConfig>();
  for (const route of routes) if (!groups.has(route.throttleGroup)) groups.set(route.throttleGroup, route);
  return groups;
}

function createThrottles(options: RoutesOptions): Map<string, Throttle> {
  const { config, restored, clock, random, observe } = options;
  const throttles = new Map<string, Throttle>();
  for (const [group, { route, ...terms }] of readThrottleTerms(config)) {
    const fleet = joinFleet(group, route, terms.throttle, options);
    const own = { route: group, restored: restored.get(group), fleet };
    throttles.set(group, createThrottle({ ...terms, ...own, clock, random, observe }));
  }
  return throttles;
}

/** What each throttle is to keep to, by group, and the route that says so. */
function readThrottleTerms(config: Config): Map<string, ThrottleTerms & { readonly route: RouteConfig }> {
  const groups = [...findThrottleGroups(config)];
  return new Map(
    groups.map(([group, route]) => [
      group,
      { route, throttle: divideAmongReplicas(route.throttle), queue: route.queue },
    ]),
  );
}

/** The fleet in which a throttle shares its quota; undefined where this process is alone. */
function joinFleet(
  group: string,
  { upstream, credential }: RouteConfig,
  settings: RateSettings,
  { sharing, config }: RoutesOptions,
): FleetMembership | undefined {
  const owner = config.credentials.find(({ name }) => name === credential);
  if (owner === undefined) return undefined;
  const { clientId } = owner.auth;
  return sharing?.joinQuota({ upstreamOrigin: upstream.baseUrl.origin, group, clientId }, settings);
}

/** A pool with the trust that its connections are opened with. */
interface UpstreamPool {
  readonly trust: TlsContextProvider | undefined;
  readonly client: Upstream;
}

/** Routes to one origin share connections and circuit, unless their connections are to be opened differently. */
function createUpstreams(
  { routes }: Config,
  egress: ProxySelector,
  { clock, observe }: Pick<RoutesOptions, 'clock' | 'observe'>,
): Map<string, UpstreamPool> {
  const ways = new Map<string, UpstreamPool>();
  for (const { upstream } of routes) {
    const way = createPoolKey(upstream);
    if (ways.has(way)) continue;
    const { baseUrl, caFile, clientCertificate, connectTimeoutMs, maxConnectionAgeMs } = upstream;
    const trust = baseUrl.protocol === 'https:' ? createTlsContextProvider(caFile, clientCertificate) : undefined;
    const terms = { clock, baseUrl, trust, egress, connectTimeoutMs, maxConnectionAgeMs };
    const heard = routes.length === 1 ? observe : prefixWarnings(baseUrl, observe);
    ways.set(way, {
      trust,
      client: createUpstream({ ...terms, observe: heard, maxConnections: computeMaxConnections(routes, way) }),
    });
  }
  return ways;
}

/** What the connections of a pool have in common. */
function createPoolKey({
  baseUrl,
  caFile,
  clientCertificate,
  connectTimeoutMs,
  maxConnectionAgeMs,
}: UpstreamConfig): string {
  const { certificateFile, keyFile } = clientCertificate ?? {};
  return JSON.stringify([baseUrl.origin, caFile, certificateFile, keyFile, connectTimeoutMs, maxConnectionAgeMs]);
}

/** As many as the throttles before a pool let through together. */
function computeMaxConnections(routes: readonly RouteConfig[], way: string): number {
  const before = routes.filter(({ upstream }) => createPoolKey(upstream) === way);
  const groups = new Map(before.map(({ throttleGroup, throttle }) => [throttleGroup, throttle]));
  let connections = 0;
  for (const { maxInFlight, maxStreams } of groups.values()) connections += maxInFlight + maxStreams;
  return connections;
}

/** Among several, a warning has to say of which it speaks. */
function prefixWarnings({ host }: URL, observe: EventObserver): EventObserver {
  return (event) => {
    observe(event.kind === 'warning' ? { ...event, message: `${host}: ${event.message}` } : event);
  };
}

function requireDefined<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('a configuration that was checked names only what there is');
  return part;
}
