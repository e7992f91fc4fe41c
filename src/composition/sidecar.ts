/** The composition root: the only place that builds the parts, connects them and starts them in order. drain.ts stops them. */
import type { Server } from 'node:http';
import { createAdminServer } from '../admin/http-server.ts';
import { createAdminHandler } from '../admin/server.ts';
import { systemClock, type Clock, type Random } from '../platform/clock.ts';
import type { Secrets } from '../platform/secrets.ts';
import { ConnectionSlots } from '../platform/connection-slots.ts';
import type { Config } from '../config/config.ts';
import { formatSettingName } from '../config/load/problems.ts';
import { DEFAULT_NAME } from '../config/schema/schema-routes.ts';
import { listDisplayedSettings } from '../config/displayed-settings.ts';
import type { StartTracer } from '../exchange/request-tracer.ts';
import { createAllowList } from '../listener/allow-list.ts';
import { bind, closeBoundServers, findBindError, type BoundServers } from '../listener/bind.ts';
import { Guard } from '../listener/guard.ts';
import { ProxyServer, type ProxyServerOptions } from '../listener/proxy-server.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { FleetSnapshot, GaugeStates } from '../telemetry/metrics/gauges.ts';
import type { Machine } from './budgets.ts';
import { drain, type DrainState, type RunningSidecar } from './drain.ts';
import { createFleetParts, type FleetParts } from './fleet.ts';
import { createReloader, type ConfigurationSource, type Reloader } from './reload.ts';
import { createObservation, type Observation } from './observation.ts';
import { createRoutes, type RunningRoutes } from './routes.ts';
import { RouteHeaders } from './route-headers.ts';
import { openLearnedStateFile, type LearnedStateFile } from './learned-state-file.ts';
import { determineBudgets } from './machine.ts';
import { openUnknownCalls, type OpenUnknownCalls } from './unknown-calls.ts';
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
  const { config, log, clock = systemClock, random = Math.random } = options;
  const { secrets } = log;
  const readStates = () => describeStates(options.version, routes, sharing);
  const observation = createObservation({ config, clock, log, readStates });
  const { observe, sampler, bindRoute, bindThrottle } = observation;
  const budgets = determineBudgets(config, options, observe);
  const learned = await openLearnedStateFile(config, clock, observe);
  const sharing = createFleetParts(config.fleet, { secrets, clock, random, observe });
  const headers = await new RouteHeaders({ config, secrets, clock, observe }).read();
  const unknownCalls = await openUnknownCalls({ config, maskSecrets: secrets.mask, clock, observe });
  const routes: RunningRoutes = createRoutes({
    ...{ config, budgets, sharing, restored: learned?.restored ?? new Map(), secrets, headers },
    stateFile: learned?.file,
    ...{ unknownCalls, bindRoute, bindThrottle, clock, random, observe },
  });
  const { tokens, throttles } = routes;
  if (sharing === undefined) await startCounting(learned, throttles, observe);

  const drainState: DrainState = { isDraining: false };
  const reloader = createReloader({ source: options.source, apply: routes.reconfigure, log, clock, observe });
  const counters = bindRoute(DEFAULT_NAME);
  const unrouted = { route: DEFAULT_NAME, observe, counters, maskSecrets: secrets.mask };
  const proxy = await createProxy(options, routes, { limits: budgets, clock, unrouted });
  const adminInputs = { clock, observation, drainState, sharing, reloader, proxy, unknownCalls };
  const adminHandler = createAdmin(options, routes, adminInputs);
  const adminSlots = new ConnectionSlots(budgets.adminConnections, 0, clock);
  const createAdminPort = () => createAdminServer(adminHandler, adminSlots);
  const started = { routes, sharing, unknownCalls };
  const admin = await bindOrStopAll(() => bindAdmin(createAdminPort, config), started);
  observe({ kind: 'listening', server: 'admin', url: admin.url });
  sharing?.client.start();
  for (const source of tokens.values()) source.start();
  const listening = await bindOrStopAll(() => bindProxy(() => proxy.createServer(), config), { ...started, admin });
  observe({ kind: 'listening', server: 'proxy', url: listening.url });
  sampler.start();
  headers.watch();
  learned?.file.startWriting(() => new Map([...throttles].map(([name, throttle]) => [name, throttle.snapshot()])));

  const running = { config, routes, clock, observe, proxy, admin, drainState, sampler, sharing, learned, unknownCalls };
  return { proxyUrl: listening.url, adminUrl: admin.url, reload: reloader.reload, drain: () => drain(running) };
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
  { tokens, throttles }: RunningRoutes,
  sharing: FleetParts | undefined,
): GaugeStates {
  const fleet = sharing && describeFleet(sharing, throttles);
  return { version, tokens: listStates(tokens), throttles: listStates(throttles), fleet };
}

async function createProxy(
  { config, log, startTracer }: SidecarOptions,
  { table }: RunningRoutes,
  { limits, clock, unrouted }: Pick<ProxyServerOptions, 'limits' | 'clock' | 'unrouted'>,
): Promise<ProxyServer> {
  const { listen } = config;
  return new ProxyServer({
    ...listen,
    routes: table,
    unrouted,
    clock,
    guard: await createGuard(config, log.secrets),
    checkAllowList: listen.allow.length === 0 ? undefined : createAllowList(listen.allow),
    limits,
    startTracer,
  });
}

interface AdminInputs {
  readonly clock: Clock;
  readonly observation: Observation;
  readonly drainState: DrainState;
  readonly sharing: FleetParts | undefined;
  readonly reloader: Reloader;
  readonly proxy: ProxyServer;
  readonly unknownCalls: OpenUnknownCalls | undefined;
}

function createAdmin(
  { config, version, onQuit, log }: SidecarOptions,
  { tokens, throttles }: RunningRoutes,
  { clock, observation, drainState, sharing, reloader, proxy, unknownCalls }: AdminInputs,
) {
  const { metrics, activity, sampler, observe } = observation;
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
  const required = { name: requiredHeader.name.toLowerCase(), value: secret.value };
  return new Guard({ ...options, requiredHeader: required });
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

/** @throws Error that names the setting and the address */
function bindProxy(create: () => Server, { listen: { address, socketMode } }: Config): Promise<BoundServers<Server>> {
  return bind(create, address, { socketMode, setting: formatSettingName('listen.address') });
}

/** The parts that run before a port is bound. */
type StartedParts = Pick<RunningSidecar, 'routes' | 'sharing' | 'unknownCalls'> &
  Partial<Pick<RunningSidecar, 'admin'>>;

async function bindOrStopAll<T>(bindPort: () => Promise<T>, started: StartedParts): Promise<T> {
  try {
    return await bindPort();
  } catch (error) {
    const { admin, routes, sharing, unknownCalls } = started;
    for (const source of routes.tokens.values()) source.stop();
    for (const throttle of routes.throttles.values()) throttle.shutDown();
    await sharing?.close();
    unknownCalls?.close();
    if (admin !== undefined) closeBoundServers(admin);
    throw error;
  }
}
