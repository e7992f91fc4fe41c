/** The composition root: the only place that builds the parts, connects them and starts them in order. drain.ts stops them. */
import type { Server } from 'node:http';
import { createAdminServer } from '../admin/admin-server.ts';
import { createAdminHandler } from '../admin/server.ts';
import type { SidecarContext } from './context.ts';
import { systemClock, type Clock, type Random } from '../platform/clock.ts';
import type { Secrets } from '../platform/secrets.ts';
import { ConnectionSlots } from '../platform/connection-slots.ts';
import type { Config } from '../config/config.ts';
import { formatSettingName } from '../config/load/problems.ts';
import { DEFAULT_NAME } from '../config/schema/schema-routes.ts';
import { listDisplayedSettings } from '../config/displayed-settings.ts';
import type { StartTracer } from '../exchange/request-tracer.ts';
import { createAllowList } from '../listener/allow-list.ts';
import { bind, findBindError, type BoundServers } from '../listener/bind.ts';
import { Guard } from '../listener/guard.ts';
import { ProxyServer } from '../listener/proxy-server.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { FleetSnapshot, GaugeStates } from '../telemetry/metrics/gauges.ts';
import type { Machine } from './budgets.ts';
import { abandon, drain, type SidecarParts } from './drain.ts';
import { createFleetParts, type FleetParts } from './fleet.ts';
import { createReloader, type ConfigurationSource, type Reloader } from './reload.ts';
import { createObservation } from './observation.ts';
import { createRoutes, type RunningRoutes } from './routes.ts';
import { RouteHeaders } from './route-headers.ts';
import { openLearnedStateFile, type LearnedStateFile } from './learned-state-file.ts';
import { createBudgetPlanner } from './machine.ts';
import { openUnknownCalls } from './unknown-calls.ts';
import { readSecret } from '../token/client/secret-file.ts';

export interface SidecarOptions {
  readonly config: Config;
  readonly version: string;
  /** Gets every event and record; its secrets get each one that is read. The status page is added to its recorders. */
  readonly log: Omit<Log, 'debug' | 'info' | 'warn' | 'error' | 'close'>;
  /** For reloads. Default: reloading is not possible. */
  readonly source?: ConfigurationSource | undefined;
  /** Called by `POST /quitquitquit` if `admin.allowQuit` is set. Default: that request is refused. */
  readonly onQuit?: () => void;
  /** Starts the spans of a request. Default: no traces. */
  readonly startTracer?: StartTracer | undefined;
  /** Default: read from this process. */
  readonly machine?: Machine;
  readonly clock?: Clock;
  readonly random?: Random;
}

export interface Sidecar {
  readonly proxyUrl: string;
  readonly adminUrl: string;
  /** Reloads the configuration and applies all changes or none. Never throws. */
  readonly reload: () => void;
  /**
   * Ends readiness, then the listener, then requests under way, then the admin port.
   * @returns the number of requests aborted at the end of `shutdown.drainMs`
   */
  drain(): Promise<number>;
}

/** @throws Error with a message for the operator when an address cannot be bound or a file cannot be read; AggregateError of several */
export async function startSidecar(options: SidecarOptions): Promise<Sidecar> {
  const parts = await createParts(options);
  const { observation, learned, routes, reloader } = parts;
  const [admin, listening] = await bindPorts(parts, options);
  observation.sampler.start();
  parts.headers.watch();
  learned?.file.startWriting(
    () => new Map([...routes.throttles].map(([name, throttle]) => [name, throttle.snapshot()])),
  );
  return { proxyUrl: listening.url, adminUrl: admin.url, reload: reloader.reload, drain: () => drain(parts, admin) };
}

async function createParts(options: SidecarOptions): Promise<SidecarParts> {
  const { config, version, log, source, clock = systemClock, random = Math.random } = options;
  const { secrets } = log;
  const readStates = () => describeStates(version, reloader, routes, sharing);
  const observation = createObservation({ config, clock, log, readStates });
  const { observe, bindRoute } = observation;
  const context: SidecarContext = { secrets, clock, random, observe };
  const planBudgets = createBudgetPlanner(options, observe);
  const budgets = planBudgets(config);
  const learned = await openLearnedStateFile(config, context, observation.successes);
  const sharing = createFleetParts(config.fleet, context);
  const headers = await new RouteHeaders({ ...context, config }).read();
  const unknownCalls = await openUnknownCalls(config.unknownCalls, context);
  const given = { ...context, ...observation, config, budgets, learned, sharing, headers, unknownCalls };
  const routes: RunningRoutes = createRoutes(given);
  if (sharing === undefined) await startCounting(learned, routes.throttles, observe);
  const apply = (next: Config): void => {
    // Before the throttles let more requests through.
    Object.assign(budgets, planBudgets(next));
    proxy.connections.applyLimits();
    routes.reconfigure(next);
  };
  const reloader = createReloader({ source, apply, log, clock, observe });
  const proxy = new ProxyServer({
    ...config.listen,
    routes: routes.table,
    unrouted: { route: DEFAULT_NAME, observe, counters: bindRoute(DEFAULT_NAME), maskSecrets: secrets.mask },
    clock,
    guard: await createGuard(config, secrets),
    checkAllowList: config.listen.allow.length === 0 ? undefined : createAllowList(config.listen.allow),
    limits: budgets,
    startTracer: options.startTracer,
  });
  return { ...given, observation, routes, reloader, proxy, drainState: { isDraining: false } };
}

/** A fleet counts in Redis. */
async function startCounting(
  learned: LearnedStateFile | undefined,
  throttles: RunningRoutes['throttles'],
  observe: EventObserver,
): Promise<void> {
  const areDeclared = [...throttles.values()].some(({ declaredLimits }) => declaredLimits !== undefined);
  if (learned !== undefined) await learned.file.startCounting(throttles);
  else if (areDeclared)
    observe({
      kind: 'warning',
      message: 'throttle.limits: counts end with this process; throttle.stateFile keeps them',
    });
}

function describeStates(
  version: string,
  reloader: Reloader,
  { tokens, throttles }: RunningRoutes,
  sharing: FleetParts | undefined,
): GaugeStates {
  const fleet = sharing && describeFleet(sharing, throttles);
  const lastReload = reloader.state().lastReload?.outcome;
  return { version, lastReload, tokens: listStates(tokens), throttles: listStates(throttles), fleet };
}

function createAdmin({ version, onQuit, log }: SidecarOptions, parts: SidecarParts) {
  const { config, clock, observation, drainState, sharing, reloader, proxy, unknownCalls } = parts;
  const { tokens, throttles } = parts.routes;
  const { metrics, activity, successes, sampler, observe } = observation;
  return createAdminHandler({
    ...config.admin,
    version,
    isOnSocketFile: config.admin.address.kind === 'unix',
    tokens: () => listStates(tokens),
    throttles: () => listStates(throttles),
    listener: () => ({ ...proxy.connections.state(), requests: proxy.activeRequests.count }),
    pendingAttempts: () => proxy.activeRequests.listPending(),
    fleet: () => sharing?.client.state(),
    configuration: reloader.state,
    logTrouble: log.deliveryProblem,
    unknownCallsFault: () => unknownCalls?.fault(),
    settings: () => {
      const loaded = reloader.current();
      return loaded && listDisplayedSettings(loaded);
    },
    activity,
    successes,
    sampler,
    onNotReady: () => {
      for (const source of tokens.values()) source.requestIfMissing();
    },
    onQuit: config.admin.allowQuit ? onQuit : undefined,
    onFault: (reason) => observe({ kind: 'warning', message: `the admin port could not respond: ${reason}` }),
    draining: () => drainState.isDraining,
    metrics,
    clock,
  });
}

function listStates<S>(parts: ReadonlyMap<string, { state(): S }>): S[] {
  return [...parts.values()].map((part) => part.state());
}

function describeFleet({ client }: FleetParts, throttles: RunningRoutes['throttles']): FleetSnapshot {
  const { state, connected } = client.state();
  const quotas = listStates(throttles).map(({ route, fleet }) => ({ route, replicas: fleet?.replicas ?? 1 }));
  return { connected, degraded: state === 'degraded', quotas };
}

async function createGuard({ listen, routes }: Config, secrets: Secrets): Promise<Guard> {
  // DNS rebinding cannot reach a socket file.
  const allowedHosts = listen.address.kind === 'unix' ? undefined : listen.allowedHosts;
  const { requiredHeader } = listen;
  const options = { ...listen, allowedHosts, baseUrls: routes.map(({ upstream }) => upstream.baseUrl) };
  if (requiredHeader === undefined) return new Guard({ ...options, requiredHeader });
  const secret = await readSecret('listen.requiredHeader.valueFile', requiredHeader.value);
  if (secret.kind === 'unreadable') throw new Error(secret.detail);
  secrets.add(secret.value);
  return new Guard({ ...options, requiredHeader: { name: requiredHeader.name, value: secret.value } });
}

/** The admin port first: it shows how tokens are requested, before the first call. @throws Error when the parts have been stopped */
async function bindPorts(
  parts: SidecarParts,
  options: SidecarOptions,
): Promise<[admin: BoundServers<Server>, proxy: BoundServers<Server>]> {
  const { config, clock, observe, budgets, sharing, routes, proxy } = parts;
  const { address, socketMode } = config.listen;
  const handler = createAdmin(options, parts);
  const slots = new ConnectionSlots(budgets.adminConnections, 0, clock);
  let admin: BoundServers<Server> | undefined;
  try {
    admin = await bindAdmin(() => createAdminServer(handler, slots), config);
    observe({ kind: 'listening', server: 'admin', url: admin.url });
    sharing?.client.start();
    for (const source of routes.tokens.values()) source.start();
    const setting = formatSettingName('listen.address');
    const listening = await bind(() => proxy.createServer(), address, { socketMode, setting });
    observe({ kind: 'listening', server: 'proxy', url: listening.url });
    return [admin, listening];
  } catch (error) {
    await abandon(parts, admin);
    throw error;
  }
}

/** @throws Error; AggregateError when the proxy port cannot be bound either, because another sidecar often has both */
async function bindAdmin(
  create: () => Server,
  { admin, listen: { address, socketMode } }: Config,
): Promise<BoundServers<Server>> {
  try {
    return await bind(create, admin.address, { setting: formatSettingName('admin.address') });
  } catch (error) {
    const proxyError = await findBindError(address, { socketMode, setting: formatSettingName('listen.address') });
    throw proxyError === undefined ? error : new AggregateError([proxyError, error], 'neither port can be bound');
  }
}
