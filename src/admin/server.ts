/**
 * The request handler of the admin port: probes, metrics, status, page, and the optional `/quitquitquit`. guard.ts decides who has
 * access; the caller binds the address. Errors are problem details (RFC 9457).
 */
import type { IncomingMessage } from 'node:http';
import { systemClock } from '../platform/clock.ts';
import type { Clock } from '../platform/clock.ts';
import type { HostPort } from '../platform/host-header.ts';
import type { PendingAttempt } from '../exchange/exchange.ts';
import type { FleetConnectionState } from '../fleet/redis/connection-health.ts';
import type { ThrottleState } from '../throttle/throttle.ts';
import type { TokenState } from '../token/token.ts';
import { createJsonResponse, createProblemResponse, sendResponse, createTextResponse } from './admin-response.ts';
import type { AdminResponse } from './admin-response.ts';
import type { ConfigurationState, StatusPageSetting } from './status/configuration.ts';
import { isLocalPeer, guardAdminRequest } from './guard.ts';
import type { AdminHandler } from './http-server.ts';
import type { LogDeliveryProblem } from '../telemetry/events.ts';
import { createPageEndpoints } from './page-endpoints.ts';
import type { PageEndpoints } from './page-endpoints.ts';
import { evaluateQuit, QUIT_PATH } from './control/quit.ts';
import { describeReadiness } from './status/readiness.ts';
import type { Readiness } from './status/readiness.ts';
import { describeDegradation } from './status/degradation.ts';
import { describeStatus } from './status/status.ts';
import { evaluateVerdict } from './verdict/verdict.ts';
import type { StatusInputs, ListenerState } from './status/status.ts';
import { evaluateAlerts } from './alerts/active-alerts.ts';
import { createActivity } from './history/activity.ts';
import type { Activity } from './history/activity.ts';
import { Sampler } from './samples/sampler.ts';

export interface AdminOptions {
  readonly version: string;
  /** Names allowed as Host; IP literals are always allowed. */
  readonly allowedHosts: readonly HostPort[];
  /** True: peers that are not loopback get everything, not only probes and metrics. */
  readonly exposeAll: boolean;
  /** At least one. */
  readonly tokens: () => readonly TokenState[];
  /** At least one. */
  readonly throttles: () => readonly ThrottleState[];
  /** Connections and requests of the proxy port. Default: not shown. */
  readonly listener?: () => ListenerState;
  /** The attempts that have no response head yet. Default: none. */
  readonly pendingAttempts?: () => readonly PendingAttempt[];
  /** Default: no fleet. */
  readonly fleet?: () => FleetConnectionState | undefined;
  /** Default: not shown. */
  readonly configuration?: () => ConfigurationState | undefined;
  /** Why log lines do not reach their destination. Default: no problem. */
  readonly logTrouble?: () => LogDeliveryProblem | undefined;
  /** All settings with secrets masked. Default: not on the status page. */
  readonly settings?: () => readonly StatusPageSetting[] | undefined;
  /** The past in words. Default: nothing has happened. */
  readonly activity?: Activity;
  /** The past in numbers. Default: nothing has happened. */
  readonly sampler?: Sampler;
  /** Called when /readyz responds 503, so that a missing token is requested at once. Default: nothing. */
  readonly onNotReady?: () => void;
  /** Called for `POST /quitquitquit` (quit.ts). Default: the endpoint does not exist. */
  readonly onQuit?: (() => void) | undefined;
  /** Called with the reason of an internal error; a repeated reason is reported once. Default: nothing. */
  readonly onFault?: (reason: string) => void;
  readonly draining: () => boolean;
  readonly metrics: { render(): Promise<string>; readonly contentType: string };
  /** Default: the process's own clock. */
  readonly clock?: Clock;
  /** True on a `unix:` socket, whose peers have no address and are local. Default false. */
  readonly isOnSocketFile?: boolean;
  /** The address of the peer. Default: that of the connection. */
  readonly peerAddress?: (request: IncomingMessage) => string | undefined;
}

const ASSET_PATH_PREFIX = '/assets/';
const NO_SERIES = { counters: new Map(), durations: new Map(), bounds: [], gauges: () => [] };

interface Resource {
  /** Allowed for peers that are not loopback. */
  readonly isPublic: boolean;
  respond(request: IncomingMessage): AdminResponse | Promise<AdminResponse>;
}

/** Handles the requests of the admin port; never throws. Uptime starts with this call. */
export function createAdminHandler(options: AdminOptions): AdminHandler {
  const { clock = systemClock, activity = createActivity(clock) } = options;
  const { sampler = new Sampler({ clock, source: NO_SERIES }) } = options;
  const readStatus = createStatusReader(options, activity, sampler, clock);
  const settings = options.settings ?? (() => undefined);
  const page = createPageEndpoints({ readStatus, activity, sampler, settings, clock });
  const resources = createResources(options, readStatus, page);
  const reportFault = createFaultReporter(options);
  const respondTo = async (request: IncomingMessage): Promise<AdminResponse> => {
    try {
      return await routeRequest(request, resources, page, options);
    } catch (error) {
      reportFault(error);
      // The error message is for the log only.
      return createProblemResponse(500, 'INTERNAL_ERROR', 'The state could not be read.');
    }
  };
  return async (request, response) => {
    sendResponse(request, response, await respondTo(request));
    if (!response.writableEnded && !response.destroyed) await new Promise((resolve) => response.once('close', resolve));
  };
}

/** Reports a repeated reason once: a page polls every second. */
function createFaultReporter({ onFault }: AdminOptions): (error: unknown) => void {
  let last: string | undefined;
  return (error) => {
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : 'unknown fault';
    if (reason !== last) onFault?.((last = reason));
  };
}

function createStatusReader(
  options: AdminOptions,
  activity: Activity,
  sampler: Sampler,
  clock: Clock,
): () => StatusInputs {
  const { version, tokens, throttles, fleet, draining } = options;
  const startedAt = clock.now();
  return () => {
    const states = {
      ...{ version, pid: process.pid, uptimeMs: clock.now() - startedAt, draining: draining() },
      ...{ tokens: tokens(), throttles: throttles(), fleet: fleet?.() },
      listener: options.listener?.(),
      scopeRefusals: activity.listScopeRefusals(),
      configuration: options.configuration?.(),
      logTrouble: options.logTrouble?.(),
      recentCalls: activity.recentCalls?.read(),
    };
    const seen = { ...states, samples: sampler.read(), wallNow: clock.wallNow() };
    const alerts = evaluateAlerts(seen);
    const verdict = evaluateVerdict({
      ...{ ...seen, alerts, faults: activity.listLastFaults(), settings: options.settings?.() },
      pending: options.pendingAttempts?.() ?? [],
      isDegraded: describeDegradation(states).length > 0,
    });
    return { ...states, alerts, verdict };
  };
}

function createResources(
  options: AdminOptions,
  readStatus: () => StatusInputs,
  page: PageEndpoints,
): ReadonlyMap<string, Resource> {
  const { tokens, draining, metrics } = options;
  const readiness = () => describeReadiness({ draining: draining(), tokens: tokens() });
  return new Map<string, Resource>([
    ['/livez', { isPublic: true, respond: () => createJsonResponse(200, { live: true }) }],
    [
      '/startupz',
      {
        isPublic: true,
        respond: () => {
          const started = tokens().every((token) => token.hasHadToken);
          return createJsonResponse(started ? 200 : 503, { started });
        },
      },
    ],
    ['/readyz', { isPublic: true, respond: () => respondReadiness(readiness(), options) }],
    [
      '/metrics',
      { isPublic: true, respond: async () => createTextResponse(metrics.contentType, await metrics.render()) },
    ],
    ['/status', { isPublic: false, respond: () => createJsonResponse(200, describeStatus(readStatus())) }],
    ['/', { isPublic: false, respond: (request) => page.render(request) }],
    ['/events', { isPublic: false, respond: () => page.events() }],
  ]);
}

function respondReadiness(readiness: Readiness, { onNotReady }: AdminOptions): AdminResponse {
  if (!readiness.ready) onNotReady?.();
  return createJsonResponse(readiness.ready ? 200 : 503, readiness);
}

function routeRequest(
  request: IncomingMessage,
  resources: ReadonlyMap<string, Resource>,
  page: PageEndpoints,
  options: AdminOptions,
): AdminResponse | Promise<AdminResponse> {
  const access = guardAdminRequest(request, options.allowedHosts);
  if (access.kind === 'refuse') return createProblemResponse(access.status, access.code, access.detail);
  const path = request.url?.split('?', 1)[0] ?? '';
  const resource =
    resources.get(path) ?? (path.startsWith(ASSET_PATH_PREFIX) ? createAssetResource(page, path) : undefined);
  const isLocal = isLocalPeer((options.peerAddress ?? getPeerAddress)(request), options.isOnSocketFile ?? false);
  if (path === QUIT_PATH && options.onQuit !== undefined) return handleQuit(request, isLocal, options.onQuit);
  if (resource?.isPublic !== true && !options.exposeAll && !isLocal) {
    return createProblemResponse(
      403,
      'REQUEST_NOT_ALLOWED',
      'Only /metrics and the probes are available to other machines.',
    );
  }
  if (resource === undefined) {
    return createProblemResponse(404, 'NOT_FOUND', `Available paths: ${[...resources.keys()].join(', ')}.`);
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    // Closes the connection, since a request body is not read.
    return createProblemResponse(405, 'METHOD_NOT_ALLOWED', 'Use GET or HEAD.', {
      Allow: 'GET, HEAD',
      Connection: 'close',
    });
  }
  return resource.respond(request);
}

/** The response is sent before the drain closes the admin port, which closes last. */
function handleQuit({ method, rawHeaders }: IncomingMessage, isLocal: boolean, quit: () => void): AdminResponse {
  const decision = evaluateQuit({ method, rawHeaders, isLocal });
  // A request body is not read.
  const headers = { Connection: 'close' };
  if (decision.kind === 'refuse') {
    const { status, code, detail } = decision;
    return createProblemResponse(status, code, detail, status === 405 ? { ...headers, Allow: 'POST' } : headers);
  }
  quit();
  const response = createJsonResponse(200, { draining: true });
  return { ...response, headers: { ...response.headers, ...headers } };
}

function createAssetResource(page: PageEndpoints, path: string): Resource {
  const notFound = (): AdminResponse =>
    createProblemResponse(404, 'NOT_FOUND', 'The page has no such file: reload the page.');
  return { isPublic: false, respond: async (request) => (await page.asset(path, request)) ?? notFound() };
}

function getPeerAddress(request: IncomingMessage): string | undefined {
  return request.socket.remoteAddress;
}
