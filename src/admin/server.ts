/** The request handler of the admin port. Errors are problem details (RFC 9457). */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { formatInstant } from '../platform/instant-text.ts';
import type { HostPort } from '../platform/host-header.ts';
import type { PendingAttempt } from '../exchange/exchange.ts';
import type { FleetConnectionState } from '../fleet/redis/connection-health.ts';
import type { ThrottleState } from '../throttle/throttle.ts';
import type { TokenState } from '../token/token.ts';
import { createJsonResponse, createProblemResponse, sendResponse, createTextResponse } from './admin-response.ts';
import type { AdminProblem, AdminResponse } from './admin-response.ts';
import type { PastSuccesses } from './history/past-successes.ts';
import type { ConfigurationState, ListenerState, SidecarStates } from './status/states.ts';
import { guardAdminRequest, isFromBrowser, isLocalPeer } from './admin-guard.ts';
import type { AdminHandler } from './admin-server.ts';
import type { LogDeliveryProblem } from '../telemetry/events.ts';
import { createPageLoader, type LoadedPage, type PageEndpointsOptions } from './page-endpoints.ts';
import { readRoutes } from './samples/traffic.ts';
import { describeReadiness } from './status/readiness.ts';
import { describeStatus, type StatusInputs } from './status/status.ts';
import { renderLimits, renderSummary } from './status/summary.ts';
import { evaluateVerdict } from './verdict/verdict.ts';
import { evaluateAlerts } from './alerts/active-alerts.ts';

export interface AdminOptions extends Omit<PageEndpointsOptions, 'readStatus'> {
  readonly version: string;
  /** Names allowed as Host; IP literals are always allowed. */
  readonly allowedHosts: readonly HostPort[];
  /** True: peers that are not loopback get everything, not only health probes and metrics. */
  readonly exposeAll: boolean;
  readonly tokens: () => readonly TokenState[];
  readonly throttles: () => readonly ThrottleState[];
  readonly listener: () => ListenerState;
  readonly pendingAttempts: () => readonly PendingAttempt[];
  readonly fleet: () => FleetConnectionState | undefined;
  readonly configuration: () => ConfigurationState | undefined;
  readonly logTrouble: () => LogDeliveryProblem | undefined;
  readonly unknownCallsFault?: () => string | undefined;
  /** Default: not known. */
  readonly successes?: Pick<PastSuccesses, 'find'> | undefined;
  /** Called when /readyz responds 503, so that a missing token is requested at once. */
  readonly onNotReady: () => void;
  /** Called for `POST /quitquitquit` (`admin.allowQuit`). Default: the endpoint does not exist. */
  readonly onQuit?: (() => void) | undefined;
  /** Called with the reason of an internal error; a repeated reason is reported once. */
  readonly onFault: (reason: string) => void;
  readonly draining: () => boolean;
  readonly metrics: { render(): Promise<string>; readonly contentType: string };
  /** True on a `unix:` socket, whose peers have no address and are local. */
  readonly isOnSocketFile: boolean;
}

const ASSET_PATH_PREFIX = '/assets/';
/** Starts the shutdown: for a pod whose other containers cannot signal this one (a Job on a cluster without native sidecars). */
const QUIT_PATH = '/quitquitquit';
const PLAIN_TEXT = 'text/plain; charset=utf-8';
/** Where a request may have a body, which is not read. */
const CLOSE = { Connection: 'close' };

interface Endpoint {
  /**
   * Who may use it. `any`: every peer. `local`: peers on this machine, with `admin.exposeAll` every peer. `local-program`: programs on this
   * machine that are no browser, the status page included.
   */
  readonly access: 'any' | 'local' | 'local-program';
  /** GET includes HEAD. */
  readonly method: 'GET' | 'POST';
  respond(request: IncomingMessage): AdminResponse | Promise<AdminResponse>;
}

/** Handles the requests of the admin port; never throws. Uptime starts with this call. */
export function createAdminHandler(options: AdminOptions): AdminHandler {
  const readStatus = createStatusReader(options);
  const loadPage = createPageLoader({ ...options, readStatus });
  const endpoints = createEndpoints(options, readStatus, loadPage);
  let lastFault: string | undefined;
  const respondTo = async (request: IncomingMessage): Promise<AdminResponse> => {
    try {
      return await routeRequest(request, endpoints, options);
    } catch (error) {
      const reason = error instanceof Error ? `${error.name}: ${error.message}` : 'unknown fault';
      // A page polls every second.
      if (reason !== lastFault) options.onFault((lastFault = reason));
      // The error message is for the log only.
      return createProblemResponse({ status: 500, code: 'INTERNAL_ERROR', detail: 'The state could not be read.' });
    }
  };
  return async (request, response) => {
    sendResponse(request, response, await respondTo(request));
    if (!response.writableEnded && !response.destroyed) await new Promise((resolve) => response.once('close', resolve));
  };
}

function createStatusReader(options: AdminOptions): () => StatusInputs {
  const { version, activity, sampler, clock } = options;
  const startedAt = clock.now();
  return () => {
    const samples = sampler.read();
    const states: SidecarStates = {
      version,
      pid: process.pid,
      uptimeMs: clock.now() - startedAt,
      draining: options.draining(),
      tokens: options.tokens(),
      throttles: options.throttles(),
      fleet: options.fleet(),
      listener: options.listener(),
      insufficientScopes: activity.listInsufficientScopes(),
      refusals: activity.listRefusals(),
      clockSkews: activity.listClockSkews(),
      configuration: options.configuration(),
      logTrouble: options.logTrouble(),
      unknownCallsFault: options.unknownCallsFault?.(),
      routes: readRoutes(samples),
      lastFailures: activity.listLastFailures(),
      recentCalls: activity.listRecentCalls(),
    };
    const seen = { ...states, samples, wallNow: clock.wallNow() };
    const alerts = evaluateAlerts(seen);
    const verdict = evaluateVerdict({
      ...seen,
      alerts,
      faults: activity.listLastFaults(),
      settings: options.settings(),
      pending: options.pendingAttempts(),
      successes: options.successes,
    });
    return { ...states, alerts, verdict };
  };
}

function createEndpoints(
  { tokens, draining, metrics, onNotReady, onQuit, clock }: AdminOptions,
  readStatus: () => StatusInputs,
  loadPage: () => Promise<LoadedPage>,
): ReadonlyMap<string, Endpoint> {
  const get = (access: Endpoint['access'], respond: Endpoint['respond']): Endpoint => {
    return { access, method: 'GET', respond };
  };
  const endpoints: Record<string, Endpoint> = {
    '/livez': get('any', () => createJsonResponse(200, { live: true })),
    '/startupz': get('any', () => {
      const started = tokens().every((token) => token.hasHadToken);
      return createJsonResponse(started ? 200 : 503, { started });
    }),
    '/readyz': get('any', () => {
      const readiness = describeReadiness({ draining: draining(), tokens: tokens() });
      if (!readiness.ready) onNotReady();
      return createJsonResponse(readiness.ready ? 200 : 503, readiness);
    }),
    '/metrics': get('any', async () => createTextResponse(metrics.contentType, await metrics.render())),
    '/status': get('local', () => createJsonResponse(200, describeStatus(readStatus()))),
    '/status.txt': get('local', () => createTextResponse(PLAIN_TEXT, renderSummary(describeStatus(readStatus())))),
    '/limits.txt': get('local', () => {
      const text = renderLimits(describeStatus(readStatus()), formatInstant(clock.wallNow()));
      return createTextResponse(PLAIN_TEXT, text);
    }),
    '/': get('local', async (request) => (await loadPage()).render(request)),
    '/events': get('local', async () => (await loadPage()).events()),
    [ASSET_PATH_PREFIX]: get('local', async (request) => (await loadPage()).assets.respond(request)),
  };
  // The response is sent before the drain closes the admin port, which closes last.
  const quit = (): AdminResponse => {
    onQuit?.();
    return createJsonResponse(200, { draining: true }, CLOSE);
  };
  if (onQuit !== undefined) endpoints[QUIT_PATH] = { access: 'local-program', method: 'POST', respond: quit };
  return new Map(Object.entries(endpoints));
}

function routeRequest(request: IncomingMessage, endpoints: ReadonlyMap<string, Endpoint>, options: AdminOptions) {
  const path = request.url?.split('?', 1)[0] ?? '';
  const endpoint = endpoints.get(path.startsWith(ASSET_PATH_PREFIX) ? ASSET_PATH_PREFIX : path);
  const problem = guardAdminRequest(request, options.allowedHosts) ?? rejectAccess(request, endpoint, options);
  if (problem !== undefined) return createProblemResponse(problem);
  if (endpoint !== undefined) return endpoint.respond(request);
  const paths = [...endpoints.keys()].filter((known) => known !== ASSET_PATH_PREFIX && known !== QUIT_PATH);
  return createProblemResponse({ status: 404, code: 'NOT_FOUND', detail: `Available paths: ${paths.join(', ')}.` });
}

/** Undefined: the request may be responded to. An unknown path is rejected for other machines as a known one is. */
function rejectAccess(
  request: IncomingMessage,
  endpoint: Endpoint | undefined,
  { exposeAll, isOnSocketFile }: AdminOptions,
): AdminProblem | undefined {
  const { access = 'local', method = 'GET' } = endpoint ?? {};
  const isLocal = isLocalPeer(request.socket.remoteAddress, isOnSocketFile);
  if (access === 'local' && !isLocal && !exposeAll)
    return refuse(403, 'Only /metrics and the probes are available to other machines.');
  if (access === 'local-program' && !isLocal) return refuse(403, 'Only available from this machine.', CLOSE);
  const isAllowed = request.method === method || (method === 'GET' && request.method === 'HEAD');
  const allow = method === 'GET' ? ['GET', 'HEAD'] : [method];
  if (endpoint !== undefined && !isAllowed)
    return refuse(405, `Use ${allow.join(' or ')}.`, { ...CLOSE, Allow: allow.join(', ') });
  if (access === 'local-program' && isFromBrowser(request.rawHeaders))
    return refuse(403, 'A browser may not stop the sidecar.', CLOSE);
  return undefined;
}

function refuse(status: 403 | 405, detail: string, headers: OutgoingHttpHeaders = {}): AdminProblem {
  return { status, code: status === 403 ? 'REQUEST_NOT_ALLOWED' : 'METHOD_NOT_ALLOWED', detail, headers };
}
