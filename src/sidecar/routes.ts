/**
 * Builds what the configured routes are made of: one token source for each credential, one throttle for each group, one pool of
 * connections for each origin that is reached in the same way, and the routes that tie these together.
 */
import type { Clock, Random } from '../platform/clock.ts';
import type { Config, RouteConfig, UpstreamConfig } from '../config/config.ts';
import { createEgress, type Egress } from '../platform/egress/egress.ts';
import { AnswerSignals } from '../exchange/answer-signal.ts';
import { ReplayMemory } from '../exchange/request-body/replay-body.ts';
import type { Route } from '../listener/admit.ts';
import type { RouteTable } from '../listener/route-table.ts';
import { createUpgradeServer } from '../listener/websocket/websocket.ts';
import { createRetryBudget } from '../retry/budget.ts';
import type { Observe } from '../telemetry/events.ts';
import { createThrottle } from '../throttle/queue/admission.ts';
import type { LearnedState, Throttle, ThrottleTerms } from '../throttle/throttle.ts';
import { followTrust, type Trust } from '../platform/tls.ts';
import type { TokenSource } from '../token/token.ts';
import { createUpstream, type Upstream } from '../upstream/client.ts';
import type { Budgets } from './budgets.ts';
import type { FleetParts } from './fleet.ts';
import { createLiveTable, type LastingParts } from './live-table.ts';
import { shareThrottle } from './replica-share.ts';
import { createTokens, type Withhold } from './tokens.ts';

export interface RoutesOptions {
  readonly config: Config;
  /** Where replicas share tokens and quotas; undefined: this process is alone. */
  readonly sharing: FleetParts | undefined;
  /** What an earlier process had learned, by throttle group. */
  readonly restored: ReadonlyMap<string, LearnedState>;
  readonly withhold: Withhold;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
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
  const egress = createEgress(config.egress);
  const tokens = createTokenSources(options, egress);
  const throttles = createThrottles(options);
  const upstreams = createUpstreams(config, egress, options);
  const memory = new ReplayMemory(replayBytes(config, options));
  const lasting = new Map(
    config.routes.map((route): [string, LastingParts] => {
      const { name, credential, throttleGroup, throttle, upstream } = route;
      const { trust, client } = existing(upstreams.get(wayOf(upstream)));
      const parts = {
        ...{ clock, random, observe, memory },
        tokens: existing(tokens.get(credential)),
        throttle: existing(throttles.get(throttleGroup)),
        answerSignals: new AnswerSignals({ route: name, share: throttle.share, clock, observe }),
        upstream: { ...client, baseUrl: upstream.baseUrl },
        budget: createRetryBudget(),
        serveUpgrade: upstream.websocket ? createUpgradeServer(trust, egress) : undefined,
      };
      return [name, parts];
    }),
  );
  const { table, rebuild } = createLiveTable(config, lasting);
  return {
    table,
    tokens,
    throttles,
    reconfigure: (next) => {
      // Connections before those who will use them.
      for (const [way, { client }] of upstreams) client.resize(mostAtOnce(next.routes, way));
      memory.resize(replayBytes(next, options));
      rebuild(next);
      for (const [group, terms] of throttleTerms(next)) existing(throttles.get(group)).reconfigure(terms);
    },
    closeUpstreams: async () => {
      await Promise.all([...upstreams.values()].map(({ client }) => client.close()));
    },
  };
}

function replayBytes({ routes: [{ retry }] }: Config, { budgets }: RoutesOptions): number {
  return Math.min(retry.replayTotalBytes, budgets.replayTotalBytes);
}

function createTokenSources(
  { config, sharing, withhold, clock, random, observe }: RoutesOptions,
  egress: Egress,
): Map<string, TokenSource> {
  const common = { egress, board: sharing?.tokenBoard, withhold, clock, random, observe };
  return new Map(
    config.credentials.map(({ name, auth }) => [name, createTokens({ ...common, credential: name, auth })]),
  );
}

/** The first route of each group, whose settings are those of all. */
export function throttleGroups({ routes }: Config): ReadonlyMap<string, RouteConfig> {
  const groups = new Map<string, RouteConfig>();
  for (const route of routes) if (!groups.has(route.throttleGroup)) groups.set(route.throttleGroup, route);
  return groups;
}

function createThrottles(options: RoutesOptions): Map<string, Throttle> {
  const { config, restored, clock, random, observe } = options;
  const throttles = new Map<string, Throttle>();
  for (const [group, { route, ...terms }] of throttleTerms(config)) {
    const fleet = joinQuota(group, route, options);
    const own = { route: group, restored: restored.get(group), fleet };
    throttles.set(group, createThrottle({ ...terms, ...own, clock, random, observe }));
  }
  return throttles;
}

/** What each throttle is to keep to, by group, and the route that says so. */
function throttleTerms(config: Config): Map<string, ThrottleTerms & { readonly route: RouteConfig }> {
  const groups = [...throttleGroups(config)];
  return new Map(
    groups.map(([group, route]) => [group, { route, throttle: shareThrottle(route.throttle), queue: route.queue }]),
  );
}

function joinQuota(group: string, { upstream, credential }: RouteConfig, { sharing, config }: RoutesOptions) {
  const owner = config.credentials.find(({ name }) => name === credential);
  if (sharing === undefined || owner === undefined) return undefined;
  const { clientId } = owner.auth;
  return { id: sharing.id, board: sharing.quotaBoard({ upstream: upstream.baseUrl.origin, group, clientId }) };
}

/** A pool with the trust that its connections are opened with. */
interface Way {
  readonly trust: Trust | undefined;
  readonly client: Upstream;
}

/** Routes to one origin share connections and circuit, unless their connections are to be opened differently. */
function createUpstreams(
  { routes }: Config,
  egress: Egress,
  { clock, observe }: Pick<RoutesOptions, 'clock' | 'observe'>,
): Map<string, Way> {
  const ways = new Map<string, Way>();
  for (const { upstream } of routes) {
    const way = wayOf(upstream);
    if (ways.has(way)) continue;
    const { baseUrl, caFile, clientCertificate, connectTimeoutMs, maxConnectionAgeMs } = upstream;
    const trust = baseUrl.protocol === 'https:' ? followTrust(caFile, clientCertificate) : undefined;
    const terms = { clock, baseUrl, trust, egress, connectTimeoutMs, maxConnectionAgeMs };
    const heard = routes.length === 1 ? observe : namingUpstream(baseUrl, observe);
    ways.set(way, {
      trust,
      client: createUpstream({ ...terms, observe: heard, connections: mostAtOnce(routes, way) }),
    });
  }
  return ways;
}

/** What the connections of a pool have in common. */
function wayOf({ baseUrl, caFile, clientCertificate, connectTimeoutMs, maxConnectionAgeMs }: UpstreamConfig): string {
  const { certificateFile, keyFile } = clientCertificate ?? {};
  return JSON.stringify([baseUrl.origin, caFile, certificateFile, keyFile, connectTimeoutMs, maxConnectionAgeMs]);
}

/** As many as the throttles before a pool let through together. */
function mostAtOnce(routes: readonly RouteConfig[], way: string): number {
  const before = routes.filter(({ upstream }) => wayOf(upstream) === way);
  const groups = new Map(before.map(({ throttleGroup, throttle }) => [throttleGroup, throttle]));
  let connections = 0;
  for (const { maxInFlight, maxStreams } of groups.values()) connections += maxInFlight + maxStreams;
  return connections;
}

/** Among several, a warning has to say of which it speaks. */
function namingUpstream({ host }: URL, observe: Observe): Observe {
  return (event) => {
    observe(event.kind === 'warning' ? { ...event, message: `${host}: ${event.message}` } : event);
  };
}

function existing<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('a configuration that was checked names only what there is');
  return part;
}
