/** A proxy port on a free port of 127.0.0.1, with its own throttle, upstream pool and events, and tokens that a test holds. */
import { systemClock } from '../../src/platform/clock.ts';
import { selectNoProxy } from '../../src/platform/egress/proxy-selector.ts';
import type { Clock } from '../../src/platform/clock.ts';
import { ForeignResponses } from '../../src/exchange/foreign-responses.ts';
import { ResponseClassifier } from '../../src/exchange/response-classifier.ts';
import type { RouteContext } from '../../src/exchange/exchange.ts';
import { ReplayMemory } from '../../src/exchange/request-body/replay-body.ts';
import { bind } from '../../src/listener/bind.ts';
import type { Route } from '../../src/listener/request-check.ts';
import { Guard, type GuardOptions } from '../../src/listener/guard.ts';
import { ProxyServer } from '../../src/listener/proxy-server.ts';
import type { ProxyServerOptions } from '../../src/listener/proxy-server.ts';
import { createRouteTable } from '../../src/listener/route-table.ts';
import { createRetryBudget } from '../../src/retry/budget.ts';
import { createThrottle } from '../../src/throttle/queue/queueing-throttle.ts';
import type { Throttle } from '../../src/throttle/throttle.ts';
import { Upstream } from '../../src/upstream/client.ts';
import { createRequestHeaderFilter } from '../../src/upstream/headers.ts';
import { createPermitRecorder, createRecordingCounters } from '../support/recorded-events.ts';
import type { RecordedEvent, RequestEnded } from '../support/recorded-events.ts';
import { FakeTokens } from './fake-tokens.ts';

export interface ProxyOptions extends Partial<Omit<ProxyServerOptions, 'routes' | 'unrouted' | 'guard' | 'limits'>> {
  readonly maxConnections?: number;
  readonly maxRefusedConnections?: number;
  readonly maxRequests?: number;
  readonly maxHeadBytes?: number;
  readonly deadlineMs?: number;
  readonly serveUpgrade?: Route['serveUpgrade'];
  readonly guard?: Partial<GuardOptions>;
  readonly clock?: Clock;
  readonly maxInFlight?: number;
  readonly maxStreams?: number;
  readonly queueMax?: number;
  readonly replayBufferBytes?: number;
  /** `retry.attempts`. Default 1. */
  readonly attempts?: number;
  readonly trustIdempotencyKey?: boolean;
  readonly requestTimeoutMs?: number;
  readonly bodyIdleTimeoutMs?: number;
  /** Default: leaves each text as it is. */
  readonly maskSecrets?: RouteContext['maskSecrets'];
  readonly refusals?: RouteContext['refusals'];
  readonly cookieRoot?: string;
  readonly unknownCalls?: RouteContext['unknownCalls'];
  /** Default: of 32 MiB. */
  readonly memory?: ReplayMemory;
}

export interface Proxy extends AsyncDisposable {
  readonly url: string;
  readonly server: ProxyServer;
  readonly tokens: FakeTokens;
  readonly throttle: Throttle;
  readonly events: readonly RecordedEvent[];
  /** The requests that have ended so far. */
  ended(): RequestEnded[];
  /** The ended requests, once there are `count` of them. */
  requestRecords(count: number): Promise<RequestEnded[]>;
}

/** @param upstreamUrl base URL of the upstream, `http:` */
export async function startProxy(upstreamUrl: string, options: ProxyOptions = {}): Promise<Proxy> {
  const events: RecordedEvent[] = [];
  const listeners = new Set<() => void>();
  const parts = buildParts(new URL(upstreamUrl), options, (event) => {
    events.push(event);
    for (const listener of listeners) listener();
  });
  const { guard, deadlineMs = 60_000, keepAliveMs = 60_000, ...rest } = options;
  const { maxConnections = 1000, maxRefusedConnections = 8, maxRequests = 1000 } = options;
  const { maxHeadBytes = Infinity } = options;
  const server = new ProxyServer({
    routes: createRouteTable<Route>([
      {
        pathPrefix: '/',
        stripPrefix: false,
        methods: undefined,
        request: { deadlineMs },
        context: parts,
        serveUpgrade: rest.serveUpgrade,
      },
    ]),
    unrouted: parts,
    clock: parts.clock,
    guard: new Guard({
      allowedHosts: [{ host: '127.0.0.1', port: undefined }],
      allowedOrigins: [],
      requiredHeader: undefined,
      ...guard,
    }),
    checkAllowList: rest.checkAllowList,
    keepAliveMs,
    limits: {
      connections: maxConnections,
      rejectedConnections: maxRefusedConnections,
      requests: maxRequests,
      headBytes: maxHeadBytes,
    },
    allowHalfClose: rest.allowHalfClose ?? false,
    startTracer: rest.startTracer,
    ...(rest.headersTimeoutMs === undefined ? {} : { headersTimeoutMs: rest.headersTimeoutMs }),
  });
  const { url } = await bind(() => server.createServer(), { kind: 'tcp', host: '127.0.0.1', port: 0 });
  const ended = (): RequestEnded[] => events.filter((event) => event.kind === 'request-ended');
  return {
    url,
    server,
    tokens: parts.tokens,
    throttle: parts.throttle,
    events,
    ended,
    requestRecords: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (ended().length < count) return;
          listeners.delete(look);
          resolve(ended());
        };
        listeners.add(look);
        look();
      }),
    [Symbol.asyncDispose]: async () => {
      server.stopAccepting();
      server.closeConnections();
      await parts.upstream.close();
    },
  };
}

function buildParts(
  baseUrl: URL,
  options: ProxyOptions,
  observe: (event: RecordedEvent) => void,
): RouteContext & { readonly tokens: FakeTokens } {
  const { clock = systemClock, maxInFlight = 8, maxStreams = 2, queueMax = 100 } = options;
  const { replayBufferBytes = 64 * 1024, requestTimeoutMs = 30_000, bodyIdleTimeoutMs = 0 } = options;
  const route = 'default';
  const random = (): number => 0.5;
  const rates = { rate: 10_000, burst: 1000, maxInFlight, maxStreams, maxPauseMs: 300_000 };
  const queue = { max: queueMax, timeoutMs: 30_000 };
  return {
    route,
    clock,
    random,
    observe,
    counters: createRecordingCounters(observe),
    maskSecrets: options.maskSecrets ?? ((text) => text),
    refusals: options.refusals,
    cookieRoot: options.cookieRoot,
    unknownCalls: options.unknownCalls,
    tokens: new FakeTokens(),
    throttle: createThrottle({
      ...{ route, throttle: rates, queue, clock, random, observe },
      recordPermit: createPermitRecorder(observe),
    }),
    foreignResponses: new ForeignResponses(),
    responseClassifier: new ResponseClassifier({ route, replicas: 1, clock, observe }),
    baseUrl,
    upstream: new Upstream({
      clock,
      baseUrl,
      trust: undefined,
      egress: selectNoProxy,
      connectTimeoutMs: 5000,
      maxConnectionAgeMs: 0,
      observe,
      maxConnections: maxInFlight + maxStreams,
      maxHeaderBytes: 65_536,
    }),
    clientPath: (path) => path,
    retryBudget: createRetryBudget(),
    memory: options.memory ?? new ReplayMemory(32 * 1024 * 1024),
    retry: {
      attempts: options.attempts ?? 1,
      unsafeOn429: true,
      on401: true,
      trustIdempotencyKey: options.trustIdempotencyKey ?? false,
      idempotencyKey: { header: null },
      replayBufferBytes,
    },
    timeouts: { requestTimeoutMs, bodyIdleTimeoutMs },
    addedHeaders: {
      filter: createRequestHeaderFilter(['Authorization'].concat(options.guard?.requiredHeader?.name ?? [])),
      list: (token) => ['Authorization', `Bearer ${token}`],
    },
  };
}
