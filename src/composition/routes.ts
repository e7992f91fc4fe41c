/**
 * Builds the parts of the configured routes: one token source per credential, one throttle per group, one connection pool per origin and
 * set of connection settings, and the table of the routes that refer to them. These parts persist when a reload builds the table again,
 * so that each request has the settings of one configuration from its beginning to its end.
 */
import { findThrottleGroups, identifyClient } from '../config/config.ts';
import type { Config, RouteConfig, UpstreamConfig } from '../config/config.ts';
import { createProxySelector, type ProxySelector } from '../platform/egress/proxy-selector.ts';
import type { RouteContext } from '../exchange/exchange.ts';
import { ForeignResponses } from '../exchange/foreign-responses.ts';
import { createRefusalRules } from '../exchange/refusals/refusal-rules.ts';
import { ResponseClassifier } from '../exchange/response-classifier.ts';
import { ReplayMemory } from '../exchange/request-body/replay-body.ts';
import type { Route } from '../listener/request-check.ts';
import { createRouteTable, type RouteTable } from '../listener/route-table.ts';
import { createUpgradeHandler } from '../listener/websocket/websocket.ts';
import { createRetryBudget } from '../retry/budget.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { DeclaredLimit } from '../throttle/declared/declared-limit.ts';
import { MIN_SHARED_MS } from '../throttle/declared/declared-limits.ts';
import { periodMs } from '../throttle/declared/limit-window.ts';
import { createThrottle } from '../throttle/queue/queueing-throttle.ts';
import type { FleetMembership } from '../throttle/fleet-membership.ts';
import type { RateSettings, Throttle, ThrottleTerms } from '../throttle/throttle.ts';
import { createTlsContextProvider, type TlsContextProvider } from '../platform/tls.ts';
import type { TokenSource } from '../token/token.ts';
import { Upstream } from '../upstream/client.ts';
import { joinTarget, withoutTrailingSlash } from '../upstream/request-target.ts';
import type { Budgets } from './budgets.ts';
import type { SidecarContext } from './context.ts';
import type { FleetParts } from './fleet.ts';
import type { LearnedStateFile } from './learned-state-file.ts';
import type { Observation } from './observation.ts';
import type { RouteHeaders } from './route-headers.ts';
import { createTokens } from './tokens.ts';
import type { OpenUnknownCalls } from './unknown-calls.ts';

export interface RoutesOptions extends SidecarContext, Pick<Observation, 'bindRoute' | 'bindThrottle'> {
  readonly config: Config;
  /** Where replicas share tokens and quotas; undefined without a fleet. */
  readonly sharing: FleetParts | undefined;
  /** Keeps what throttles have learned, and the counts of declared limits. */
  readonly learned: LearnedStateFile | undefined;
  /** Read already. */
  readonly headers: RouteHeaders;
  readonly unknownCalls: OpenUnknownCalls | undefined;
  readonly budgets: Budgets;
}

/** The parts that requests use: tokens by credential, throttles by group. Token sources are not started yet. */
export type RunningRoutes = ReturnType<typeof createRoutes>;

/** What a route keeps when its settings change. */
export type PersistentRouteParts = Omit<RouteContext, 'clientPath' | keyof ReturnType<typeof readRouteSettings>> &
  Pick<Route, 'serveUpgrade'>;

export function createRoutes(options: RoutesOptions) {
  const { config, headers } = options;
  const egress = createProxySelector(config.egress);
  const tokens = createTokenSources(options, egress);
  const throttles = createThrottles(options);
  const upstreams = createUpstreams(config, egress, options);
  const memory = new ReplayMemory(computeReplayBytes(config, options));
  const shared = { egress, tokens, throttles, upstreams, memory };
  const persistent = new Map(config.routes.map((route) => [route.name, createRouteParts(route, options, shared)]));
  // A copy: routes of an earlier configuration go on using their own table.
  const table: RouteTable<Route> = { ...buildRouteTable(config, persistent) };
  /**
   * Applies the settings that can change while running; the others must be equal. Requests under way keep their settings, except those of
   * the throttle.
   */
  const reconfigure = (next: Config): void => {
    // Pools before the throttles that let more requests through to them.
    for (const [key, { client }] of upstreams) client.resize(computeMaxConnections(next, key));
    memory.resize(computeReplayBytes(next, options));
    for (const { name, throttle } of next.routes)
      requireDefined(persistent.get(name)).responseClassifier.setHints(throttle.hints);
    Object.assign(table, buildRouteTable(next, persistent));
    for (const [group, terms] of readThrottleTerms(next)) requireDefined(throttles.get(group)).reconfigure(terms);
    void options.learned?.file.lease();
  };
  /** Closes all connections to upstreams, also those in use, and stops reading the files of their header fields. */
  const closeUpstreams = async (): Promise<void> => {
    headers.stop();
    await Promise.all([...upstreams.values()].map(({ client }) => client.close()));
  };
  return { table, tokens, throttles, reconfigure, closeUpstreams };
}

interface SharedParts {
  readonly tokens: ReadonlyMap<string, TokenSource>;
  readonly throttles: ReadonlyMap<string, Throttle>;
  readonly egress: ProxySelector;
  /** By the key of their settings. */
  readonly upstreams: ReadonlyMap<string, UpstreamPool>;
  readonly memory: ReplayMemory;
}

function createRouteParts(
  route: RouteConfig,
  options: RoutesOptions,
  { egress, tokens, throttles, upstreams, memory }: SharedParts,
): PersistentRouteParts {
  const { clock, random, observe, unknownCalls, headers } = options;
  const maskSecrets = options.secrets.mask;
  const { name, upstream, throttle } = route;
  const { trust, client } = requireDefined(upstreams.get(createPoolKey(upstream)));
  return {
    clock,
    random,
    observe,
    memory,
    unknownCalls,
    counters: options.bindRoute(name),
    maskSecrets,
    tokens: requireDefined(tokens.get(route.credential)),
    throttle: requireDefined(throttles.get(route.throttleGroup)),
    responseClassifier: new ResponseClassifier({
      route: name,
      replicas: options.config.fleet === undefined ? throttle.share : 1,
      hints: throttle.hints,
      maskSecrets,
      clock,
      observe,
    }),
    foreignResponses: new ForeignResponses(),
    upstream: client,
    baseUrl: upstream.baseUrl,
    retryBudget: createRetryBudget(),
    addedHeaders: requireDefined(headers.byRoute.get(name)),
    serveUpgrade: upstream.websocket ? createUpgradeHandler({ ...upstream, trust, egress }) : undefined,
  };
}

/** @param persistent by name of the route; for each that is configured, now or later */
export function buildRouteTable(
  config: Config,
  persistent: ReadonlyMap<string, PersistentRouteParts>,
): RouteTable<Route> {
  const table: RouteTable<Route> = createRouteTable(
    config.routes.map((route): Route => {
      const { serveUpgrade, ...kept } = requireDefined(persistent.get(route.name));
      const clientPath = (path: string) => findClientPath(table, route, path);
      const context: RouteContext = { ...kept, ...readRouteSettings(route, config), clientPath };
      return { ...route, context, serveUpgrade };
    }),
  );
  return table;
}

/** The settings that the exchange reads. */
function readRouteSettings(
  { name, pathPrefix, stripPrefix, upstream, retry, throttle }: RouteConfig,
  { response }: Config,
) {
  const ownPath = stripPrefix || pathPrefix === '/' ? '' : pathPrefix;
  return {
    route: name,
    retry,
    refusals: createRefusalRules(throttle.refusals),
    timeouts: upstream,
    cookieRoot: response.cookies === 'adapt' ? ownPath : undefined,
  };
}

/** The client's path for a path below a route's base; undefined when a request to it would reach another resource. */
function findClientPath(table: RouteTable<Route>, route: RouteConfig, path: string): string | undefined {
  const clientPath = (route.stripPrefix && route.pathPrefix !== '/' ? route.pathPrefix : '') + path || '/';
  const match = table.match(clientPath);
  if (match.kind !== 'matched') return undefined;
  const { baseUrl } = match.route.context;
  const reached = joinTarget(baseUrl.pathname, clientPath, match.strippedLength);
  const intended = joinTarget(route.upstream.baseUrl.pathname, path || '/', path === '' ? 1 : 0);
  const isSame =
    typeof reached === 'string' &&
    typeof intended === 'string' &&
    withoutTrailingSlash(reached) === withoutTrailingSlash(intended);
  return isSame && baseUrl.origin === route.upstream.baseUrl.origin ? clientPath : undefined;
}

function computeReplayBytes({ routes: [{ retry }] }: Config, { budgets }: RoutesOptions): number {
  return Math.min(retry.replayTotalBytes, budgets.replayTotalBytes);
}

function createTokenSources(options: RoutesOptions, egress: ProxySelector): Map<string, TokenSource> {
  const { config, sharing, headers } = options;
  const common = { ...options, headerFault: headers.fault, egress, tokenStore: sharing?.tokenStore };
  return new Map(
    config.credentials.map(({ name, auth }) => {
      const tokenHeaders = listTokenHeaders(config, name);
      return [name, createTokens({ ...common, credential: name, auth, tokenHeaders })];
    }),
  );
}

function listTokenHeaders({ routes }: Config, credential: string): readonly string[] {
  const users = routes.filter((route) => route.credential === credential);
  const fields = users.map(({ upstream }) => `${upstream.tokenHeader.toLowerCase()}: ${upstream.tokenPrefix}`);
  return [...new Set(fields)].toSorted();
}

function createThrottles(options: RoutesOptions): Map<string, Throttle> {
  const { config, learned, clock, random, observe } = options;
  const throttles = new Map<string, Throttle>();
  const parts = { requestPermits: learned?.file.requestPermits, clock, random, observe };
  for (const [group, { route, ...terms }] of readThrottleTerms(config)) {
    const fleet = joinFleet(group, route, terms.throttle, options);
    const own = {
      route: group,
      restored: learned?.restored.get(group),
      fleet,
      recordPermit: options.bindThrottle(group),
    };
    throttles.set(group, createThrottle({ ...terms, ...own, ...parts }));
  }
  return throttles;
}

/** The terms of each throttle by group, and the route that they come from. */
function readThrottleTerms(config: Config): Map<string, ThrottleTerms & { readonly route: RouteConfig }> {
  const groups = [...findThrottleGroups(config)];
  return new Map(
    groups.map(([group, route]) => [
      group,
      { route, throttle: readRateSettings(route.throttle, config.fleet !== undefined), queue: route.queue },
    ]),
  );
}

/**
 * One replica's part of the limits for all replicas (`throttle.share`); together they exceed a limit only if burst < replicas. A fleet deals
 * out short declared limits by its rate.
 */
function readRateSettings(throttle: RouteConfig['throttle'], isFleet: boolean): RouteConfig['throttle'] {
  const { rate, burst, maxRate, limits } = throttle;
  const share = isFleet ? 1 : throttle.share;
  const isShort = ({ per, match }: DeclaredLimit) => match === undefined && periodMs(per) < MIN_SHARED_MS;
  const short = isFleet ? limits.filter(isShort) : [];
  const limitRate = Math.min(...short.map(({ calls, per }) => (calls * SHORT_LIMIT_PART * 1000) / periodMs(per)));
  const highestRate = Math.min(limitRate, maxRate ?? Infinity);
  // What is saved up comes on top of the rate.
  const highestBurst = Math.min(...short.map(({ calls }) => calls * (1 - SHORT_LIMIT_PART)));
  return {
    ...throttle,
    rate: rate === 'auto' ? rate : Math.min(rate, limitRate) / share,
    burst: Math.max(1, Math.floor(Math.min(burst, highestBurst) / share)),
    maxRate: Number.isFinite(highestRate) ? highestRate / share : undefined,
  };
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
  const identity = { upstreamOrigin: upstream.baseUrl.origin, group, client: identifyClient(owner) };
  return sharing?.joinQuota(identity, settings);
}

/** The part of a declared limit that is dealt out by the rate: permits are used up to 50 ms late. */
const SHORT_LIMIT_PART = 0.98;

interface UpstreamPool {
  /** For new connections to an `https:` origin. */
  readonly trust: TlsContextProvider | undefined;
  readonly client: Upstream;
}

/** Routes to one origin share pool and circuit breaker if their connection settings are the same. */
function createUpstreams(
  config: Config,
  egress: ProxySelector,
  { clock, observe }: Pick<RoutesOptions, 'clock' | 'observe'>,
): Map<string, UpstreamPool> {
  const { routes } = config;
  const pools = new Map<string, UpstreamPool>();
  for (const { upstream } of routes) {
    const key = createPoolKey(upstream);
    if (pools.has(key)) continue;
    const { baseUrl, caFile, clientCertificate, tlsGroups } = upstream;
    const isSecure = baseUrl.protocol === 'https:';
    const trust = isSecure ? createTlsContextProvider(caFile, clientCertificate, tlsGroups) : undefined;
    const poolObserver = routes.length === 1 ? observe : prefixWarnings(baseUrl, observe);
    const maxConnections = computeMaxConnections(config, key);
    pools.set(key, {
      trust,
      client: new Upstream({ ...upstream, clock, trust, egress, observe: poolObserver, maxConnections }),
    });
  }
  return pools;
}

/** The settings that the connections of a pool have in common. */
function createPoolKey({
  baseUrl,
  caFile,
  clientCertificate,
  connectTimeoutMs,
  maxConnectionAgeMs,
  maxHeaderBytes,
  tlsGroups,
}: UpstreamConfig): string {
  const { certificateFile, keyFile } = clientCertificate ?? {};
  const tls = [caFile, certificateFile, keyFile, tlsGroups];
  return JSON.stringify([baseUrl.origin, ...tls, connectTimeoutMs, maxConnectionAgeMs, maxHeaderBytes]);
}

/** The number of requests and streams that the throttles of a pool let through together. */
function computeMaxConnections({ routes, listen }: Config, key: string): number {
  const ownRoutes = routes.filter(({ upstream }) => createPoolKey(upstream) === key);
  const groups = new Map(ownRoutes.map(({ throttleGroup, throttle }) => [throttleGroup, throttle]));
  let connections = 0;
  for (const { mode, maxInFlight, maxStreams } of groups.values())
    connections += mode === 'observe' ? listen.maxConnections : maxInFlight + maxStreams;
  return connections;
}

/** With several routes, a warning names its host. */
function prefixWarnings({ host }: URL, observe: EventObserver): EventObserver {
  return (event) => {
    observe(event.kind === 'warning' ? { ...event, message: `${host}: ${event.message}` } : event);
  };
}

function requireDefined<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('a valid configuration refers only to parts that exist');
  return part;
}
