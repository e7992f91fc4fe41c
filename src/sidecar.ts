/**
 * The composition root: the only place that builds the parts and joins them, starts them in order, and lets them go in
 * the reverse order. What each part does is told in its own folder.
 */
import type { Server } from 'node:http';
import { createAdminHandler, createAdminServer } from './admin/server.ts';
import { systemClock, type Clock, type Random } from './clock.ts';
import type { Config } from './config/config.ts';
import type { ExchangeParts } from './exchange/exchange.ts';
import { ReplayMemory } from './exchange/replay-body.ts';
import { createAllowList } from './listener/allow-list.ts';
import { bind, closeBound, type Bound } from './listener/bind.ts';
import type { GuardOptions } from './listener/guard.ts';
import { ProxyServer } from './listener/proxy-server.ts';
import { createUpgradeServer } from './listener/websocket.ts';
import { createRetryBudget } from './retry/budget.ts';
import type { Observe } from './telemetry/events.ts';
import { createMetrics, type Metrics } from './telemetry/metrics.ts';
import { drain, type Phase } from './sidecar/drain.ts';
import { createThrottle } from './throttle/admission.ts';
import { readSecret } from './token/secret-file.ts';
import { createTokenEndpoint } from './token/token-endpoint.ts';
import { createTokenSource } from './token/token-source.ts';
import type { TokenSource } from './token/token.ts';
import { followTrust, type Trust } from './tls.ts';
import { createUpstream } from './upstream/client.ts';

export interface SidecarOptions {
  readonly config: Config;
  readonly version: string;
  /** Hears every event besides the metrics: the log. */
  readonly observe: Observe;
  readonly logLinesDropped: () => number;
  readonly clock?: Clock;
  readonly random?: Random;
}

export interface Sidecar {
  readonly proxyUrl: string;
  readonly adminUrl: string;
  /**
   * Stops for good: readiness goes first, then the listener, then the work in hand, then the admin port.
   * @returns how many requests had to be cut at the end of `shutdown.drainMs`; 0 = nothing was lost
   */
  drain(): Promise<number>;
}

/** The one route and the one credential, until several can be configured. */
const DEFAULT_NAME = 'default';

/** @throws Error in words for people when an address cannot be bound or a file cannot be read */
export async function startSidecar(options: SidecarOptions): Promise<Sidecar> {
  const { config } = options;
  const observers: Observe[] = [options.observe];
  const observe: Observe = (event) => {
    for (const hear of observers) hear(event);
  };
  const parts = buildParts(options, observe);
  const { tokens, throttle } = parts;
  const metrics = createMetrics({
    version: options.version,
    routes: [DEFAULT_NAME],
    credentials: [DEFAULT_NAME],
    tokens: () => [tokens.state()],
    throttles: () => [throttle.state()],
    logLinesDropped: options.logLinesDropped,
  });
  observers.push(metrics.observe);

  const phase: Phase = { isDraining: false };
  const proxy = await createProxy(config, parts);
  const adminHandler = createAdmin(options, parts, metrics, phase);
  const admin = await bind(() => createAdminServer(adminHandler), config.admin.address);
  observe({ kind: 'listening', server: 'admin', url: admin.url });
  tokens.start();
  const listening = await bindOrUndo(
    () => bind(() => proxy.createServer(), config.listen.address, config.listen.socketMode),
    admin,
    tokens,
  );
  observe({ kind: 'listening', server: 'proxy', url: listening.url });

  return {
    proxyUrl: listening.url,
    adminUrl: admin.url,
    drain: () => drain({ config, parts, proxy, admin, phase }),
  };
}

async function createProxy(config: Config, parts: ExchangeParts): Promise<ProxyServer> {
  const { listen, request, upstream } = config;
  return new ProxyServer({
    parts,
    guard: await guardOptions(config),
    refuseUnlisted: createAllowList(listen.allow),
    deadlineMs: request.deadlineMs,
    keepAliveMs: listen.keepAliveMs,
    maxConnections: listen.maxConnections,
    allowHalfClose: listen.allowHalfClose,
    serveUpgrade: upstream.websocket ? createUpgradeServer(trustFor(config)) : undefined,
  });
}

function createAdmin({ config, version }: SidecarOptions, parts: ExchangeParts, metrics: Metrics, phase: Phase) {
  return createAdminHandler({
    version,
    allowedHosts: config.admin.allowedHosts,
    exposeAll: config.admin.exposeAll,
    token: () => parts.tokens.state(),
    throttle: () => parts.throttle.state(),
    draining: () => phase.isDraining,
    metrics,
    clock: parts.clock,
  });
}

function buildParts(options: SidecarOptions, observe: Observe): ExchangeParts {
  const { config, clock = systemClock, random = Math.random } = options;
  const { auth, throttle, queue, retry, upstream } = config;
  const endpoint = createTokenEndpoint({ ...auth, clock });
  return {
    route: DEFAULT_NAME,
    clock,
    random,
    observe,
    tokens: createTokenSource({
      credential: DEFAULT_NAME,
      requestToken: (signal) => endpoint.requestToken(signal),
      credentialsChanged: () => endpoint.credentialsChanged(),
      invalidationCooldownMs: auth.invalidationCooldownMs,
      clock,
      random,
      observe,
    }),
    throttle: createThrottle({ route: DEFAULT_NAME, throttle, queue, clock, random, observe }),
    upstream: createUpstream({
      clock,
      baseUrl: upstream.baseUrl,
      trust: trustFor(config),
      connectTimeoutMs: upstream.connectTimeoutMs,
      maxConnectionAgeMs: upstream.maxConnectionAgeMs,
      observe,
      connections: throttle.maxInFlight + throttle.maxStreams,
    }),
    budget: createRetryBudget(),
    memory: new ReplayMemory(retry.replayTotalBytes),
    retry,
    requestTimeoutMs: upstream.requestTimeoutMs,
    bodyIdleTimeoutMs: upstream.bodyIdleTimeoutMs,
    requiredHeader: config.listen.requiredHeader?.name.toLowerCase(),
  };
}

function trustFor({ upstream }: Config): Trust | undefined {
  return upstream.baseUrl.protocol === 'https:' ? followTrust(upstream.caFile) : undefined;
}

async function guardOptions({ listen }: Config): Promise<GuardOptions> {
  const { requiredHeader } = listen;
  const common = {
    // Nobody rebinds a name to a socket file.
    allowedHosts: listen.address.kind === 'unix' ? undefined : listen.allowedHosts,
    allowedOrigins: listen.allowedOrigins,
  };
  if (requiredHeader === undefined) return { ...common, requiredHeader };
  const reading = await readSecret('listen.requiredHeader.valueFile', requiredHeader.value);
  if (reading.kind === 'unreadable') throw new Error(reading.detail);
  return { ...common, requiredHeader: { name: requiredHeader.name.toLowerCase(), value: reading.value } };
}

/** A proxy port that cannot be had must leave nothing running behind. */
async function bindOrUndo<T>(bindProxy: () => Promise<T>, admin: Bound<Server>, tokens: TokenSource): Promise<T> {
  try {
    return await bindProxy();
  } catch (error) {
    tokens.stop();
    closeBound(admin);
    throw error;
  }
}
