/**
 * The admin port: probes, metrics, status. It reads states and changes nothing. Who may ask is judged in guard.ts, what
 * is said is worded in status.ts; binding an address is left to the caller. Refusals are problem details (RFC 9457).
 */
import type { IncomingMessage } from 'node:http';
import { systemClock } from '../platform/clock.ts';
import type { Clock } from '../platform/clock.ts';
import type { FleetConnectionState } from '../fleet/redis/connection-health.ts';
import type { ThrottleState } from '../throttle/throttle.ts';
import type { TokenState } from '../token/token.ts';
import { createJsonResponse, createProblemResponse, sendResponse, createTextResponse } from './admin-response.ts';
import type { AdminResponse } from './admin-response.ts';
import type { ConfigurationState, StatusPageSetting } from './status/configuration.ts';
import { isLocalPeer, guardAdminRequest } from './guard.ts';
import type { AdminHandler } from './http-server.ts';
import type { AllowedAdminHost } from './guard.ts';
import { handleLogLevel, LOG_LEVEL_PATH } from './control/log-level-endpoint.ts';
import type { LogLevelSwitch } from './control/log-level-switch.ts';
import type { LogDeliveryProblem } from '../telemetry/events.ts';
import { createPageEndpoints } from './page-endpoints.ts';
import type { PageEndpoints } from './page-endpoints.ts';
import { evaluateQuit, QUIT_PATH } from './control/quit.ts';
import { describeReadiness } from './status/readiness.ts';
import type { Readiness } from './status/readiness.ts';
import { describeStatus } from './status/status.ts';
import type { StatusInputs, ListenerState, ScopeRefusals } from './status/status-shape.ts';
import { createActivityRecorder } from './history/activity-recorder.ts';
import type { ActivityRecorder } from './history/activity-recorder.ts';

export interface AdminOptions {
  readonly version: string;
  /** Names allowed as Host; IP literals always are. */
  readonly allowedHosts: readonly AllowedAdminHost[];
  /** True: peers that are not loopback get everything, not the probes and metrics only. */
  readonly exposeAll: boolean;
  /** At least one. */
  readonly tokens: () => readonly TokenState[];
  /** At least one. */
  readonly throttles: () => readonly ThrottleState[];
  /** What the proxy port holds and may hold. Default: nothing is shown. */
  readonly listener?: () => ListenerState;
  /** Default: no fleet. */
  readonly fleet?: () => FleetConnectionState | undefined;
  /** Default: none. */
  readonly scopeRefusals?: () => readonly ScopeRefusals[];
  /** Default: nothing is told of it. */
  readonly configuration?: () => ConfigurationState | undefined;
  /** What keeps log lines from their destination. Default: nothing. */
  readonly logTrouble?: () => LogDeliveryProblem | undefined;
  /** The configuration, setting by setting, secrets masked. Default: the status page leaves it out. */
  readonly settings?: () => readonly StatusPageSetting[] | undefined;
  /** What has happened lately, for the status page. Default: nothing. */
  readonly activity?: ActivityRecorder;
  /** Somebody asked for readiness while it was not given: what is missing is wanted now. Default: nobody hears it. */
  readonly onNotReady?: () => void;
  /** Somebody on this machine asks for the end (quit.ts). Default: nobody may. */
  readonly onQuit?: (() => void) | undefined;
  /** Told and changed at /log-level (log-level.ts). Default: it is not there. */
  readonly logLevelSwitch?: LogLevelSwitch | undefined;
  /** Why a request could not be answered, once for each reason in a row. Default: nobody hears it. */
  readonly onFault?: (reason: string) => void;
  readonly draining: () => boolean;
  readonly metrics: { render(): Promise<string>; readonly contentType: string };
  /** Default: the process's own clock. */
  readonly clock?: Clock;
  /** Bound to a `unix:` socket, whose peers have no address and are on this machine. Default false. */
  readonly isOnSocketFile?: boolean;
  /** The address of who asks; undefined when there is none. Default: that of the connection. */
  readonly peerAddress?: (request: IncomingMessage) => string | undefined;
}

/** Where the files of the page are. */
const ASSET_PATH_PREFIX = '/assets/';

interface Resource {
  /** For peers that are not loopback, too. */
  readonly isPublic: boolean;
  respond(request: IncomingMessage): AdminResponse | Promise<AdminResponse>;
}

/** Answers the requests of the admin port, never throws. Uptime is counted from this call. */
export function createAdminHandler(options: AdminOptions): AdminHandler {
  const states = createStatusReader(options);
  const door = createPage(options, states);
  const resources = createResources(options, states, door);
  const tell = createFaultReporter(options);
  const answerTo = async (request: IncomingMessage): Promise<AdminResponse> => {
    try {
      return await routeRequest(request, resources, door, options);
    } catch (error) {
      tell(error);
      // What went wrong may name things that are no business of whoever asks.
      return createProblemResponse(500, 'INTERNAL_ERROR', 'The state could not be read.');
    }
  };
  return async (request, response) => {
    sendResponse(request, response, await answerTo(request));
    if (!response.writableEnded && !response.destroyed) await new Promise((resolve) => response.once('close', resolve));
  };
}

/** A page that asks every second for what is broken fills no log. */
function createFaultReporter({ onFault }: AdminOptions): (error: unknown) => void {
  let last: string | undefined;
  return (error) => {
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : 'unknown fault';
    if (reason !== last) onFault?.((last = reason));
  };
}

function createStatusReader(options: AdminOptions): () => StatusInputs {
  const { version, tokens, throttles, fleet, draining, clock = systemClock } = options;
  const startedAt = clock.now();
  return () => ({
    version,
    uptimeMs: clock.now() - startedAt,
    draining: draining(),
    tokens: tokens(),
    throttles: throttles(),
    listener: options.listener?.(),
    fleet: fleet?.(),
    scopeRefusals: options.scopeRefusals?.() ?? [],
    configuration: options.configuration?.(),
    logTrouble: options.logTrouble?.(),
  });
}

function createPage({ settings, throttles, ...options }: AdminOptions, states: () => StatusInputs): PageEndpoints {
  const { clock = systemClock, activity = createActivityRecorder({ clock, throttles }) } = options;
  return createPageEndpoints({ readStatus: states, activity, settings: settings ?? (() => undefined), clock });
}

function createResources(
  options: AdminOptions,
  states: () => StatusInputs,
  door: PageEndpoints,
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
    ['/status', { isPublic: false, respond: () => createJsonResponse(200, describeStatus(states())) }],
    ['/', { isPublic: false, respond: (request) => door.page(request) }],
    ['/events', { isPublic: false, respond: () => door.events() }],
  ]);
}

/** Whoever asks while it is not ready waits for that to change. */
function respondReadiness(readiness: Readiness, { onNotReady }: AdminOptions): AdminResponse {
  if (!readiness.ready) onNotReady?.();
  return createJsonResponse(readiness.ready ? 200 : 503, readiness);
}

function routeRequest(
  request: IncomingMessage,
  resources: ReadonlyMap<string, Resource>,
  door: PageEndpoints,
  options: AdminOptions,
): AdminResponse | Promise<AdminResponse> {
  const verdict = guardAdminRequest(request, options.allowedHosts);
  if (verdict.kind === 'refuse') return createProblemResponse(verdict.status, verdict.code, verdict.detail);
  const path = request.url?.split('?', 1)[0] ?? '';
  const resource =
    resources.get(path) ?? (path.startsWith(ASSET_PATH_PREFIX) ? createAssetResource(door, path) : undefined);
  const isLocal = isLocalPeer((options.peerAddress ?? getPeerAddress)(request), options.isOnSocketFile ?? false);
  if (path === QUIT_PATH && options.onQuit !== undefined) return handleQuit(request, isLocal, options.onQuit);
  if (path === LOG_LEVEL_PATH && options.logLevelSwitch !== undefined)
    return handleLogLevel(request, isLocal, options.logLevelSwitch);
  if (resource?.isPublic !== true && !options.exposeAll && !isLocal) {
    return createProblemResponse(
      403,
      'REQUEST_NOT_ALLOWED',
      'From another machine only /metrics and the probes may be asked.',
    );
  }
  if (resource === undefined) {
    return createProblemResponse(404, 'NOT_FOUND', `Known here: ${[...resources.keys()].join(', ')}.`);
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    // The connection goes with the refusal: its request may have a body, and nobody is going to read it.
    return createProblemResponse(405, 'METHOD_NOT_ALLOWED', 'GET or HEAD is expected.', {
      Allow: 'GET, HEAD',
      Connection: 'close',
    });
  }
  return resource.respond(request);
}

/** The answer leaves before the drain has come to the admin port, which closes last. */
function handleQuit({ method, rawHeaders }: IncomingMessage, isLocal: boolean, quit: () => void): AdminResponse {
  const verdict = evaluateQuit({ method, rawHeaders, isLocal });
  // The connection goes with the answer: the request may have a body, and nobody is going to read it.
  const headers = { Connection: 'close' };
  if (verdict.kind === 'refuse') {
    const { status, code, detail } = verdict;
    return createProblemResponse(status, code, detail, status === 405 ? { ...headers, Allow: 'POST' } : headers);
  }
  quit();
  const answer = createJsonResponse(200, { draining: true });
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** One of the page's; they are found by name once they have been read. */
function createAssetResource(door: PageEndpoints, path: string): Resource {
  const gone = (): AdminResponse =>
    createProblemResponse(404, 'NOT_FOUND', 'The page has no such file; loading it anew helps.');
  return { isPublic: false, respond: async (request) => (await door.asset(path, request)) ?? gone() };
}

function getPeerAddress(request: IncomingMessage): string | undefined {
  return request.socket.remoteAddress;
}
