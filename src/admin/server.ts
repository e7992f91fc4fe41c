/**
 * The admin port: probes, metrics, status. It reads states and changes nothing. Who may ask is judged in guard.ts, what
 * is said is worded in status.ts; binding an address is left to the caller. Refusals are problem details (RFC 9457).
 */
import { createServer, STATUS_CODES } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders, RequestListener, Server, ServerResponse } from 'node:http';
import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import type { FleetState } from '../fleet/condition.ts';
import type { ThrottleState } from '../throttle/throttle.ts';
import type { TokenState } from '../token/token.ts';
import type { ConfigurationState } from './configuration.ts';
import { isLocalPeer, judgeRequest } from './guard.ts';
import type { AllowedAdminHost } from './guard.ts';
import { renderStatusPage, STATUS_PAGE_POLICY } from './page/status-page.ts';
import { describeReadiness } from './readiness.ts';
import type { Readiness } from './readiness.ts';
import { describeStatus } from './status.ts';
import type { AdminStates, ScopeRefusals } from './status.ts';

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
  /** Default: no fleet. */
  readonly fleet?: () => FleetState | undefined;
  /** Default: none. */
  readonly scopeRefusals?: () => readonly ScopeRefusals[];
  /** Default: nothing is told of it. */
  readonly configuration?: () => ConfigurationState | undefined;
  /** Somebody asked for readiness while it was not given: what is missing is wanted now. Default: nobody hears it. */
  readonly onNotReady?: () => void;
  readonly draining: () => boolean;
  readonly metrics: { render(): Promise<string>; readonly contentType: string };
  /** Default: the process's own clock. */
  readonly clock?: Clock;
  /** The address of who asks, undefined on a `unix:` socket. Default: that of the connection. */
  readonly peerAddress?: (request: IncomingMessage) => string | undefined;
}

/** Whoever asks the admin port asks little and reads at once: slow and idle peers must not keep a probe out. */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 16 * 1024,
  // The guard counts the Host fields, and says what it expects.
  requireHostHeader: false,
};
const MAX_CONNECTIONS = 64;
const IDLE_SOCKET_MS = 10_000;

interface Answer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

interface Resource {
  /** For peers that are not loopback, too. */
  readonly open: boolean;
  answer(): Answer | Promise<Answer>;
}

/** An HTTP server with the limits of the admin port, not listening yet; one for each address that is bound. */
export function createAdminServer(handler: RequestListener): Server {
  const server = createServer(LIMITS, handler);
  server.maxConnections = MAX_CONNECTIONS;
  server.setTimeout(IDLE_SOCKET_MS);
  return server;
}

/** Answers the requests of the admin port, never throws. Uptime is counted from this call. */
export function createAdminHandler(options: AdminOptions): RequestListener {
  const resources = createResources(options);
  const answerTo = async (request: IncomingMessage): Promise<Answer> => {
    try {
      return await route(request, resources, options);
    } catch {
      // What went wrong may name things that are no business of whoever asks.
      return refuse(500, 'INTERNAL_ERROR', 'The state could not be read.');
    }
  };
  return (request, response) => {
    void answerTo(request).then((answer) => {
      send(request, response, answer);
    });
  };
}

function createResources(options: AdminOptions): ReadonlyMap<string, Resource> {
  const { version, tokens, throttles, fleet, draining, metrics, clock = systemClock } = options;
  const startedAt = clock.now();
  const states = (): AdminStates => ({
    version,
    uptimeMs: clock.now() - startedAt,
    draining: draining(),
    tokens: tokens(),
    throttles: throttles(),
    fleet: fleet?.(),
    scopeRefusals: options.scopeRefusals?.() ?? [],
    configuration: options.configuration?.(),
  });
  const readiness = () => describeReadiness({ draining: draining(), tokens: tokens() });
  return new Map<string, Resource>([
    ['/livez', { open: true, answer: () => json(200, { live: true }) }],
    [
      '/startupz',
      {
        open: true,
        answer: () => {
          const started = tokens().every((token) => token.started);
          return json(started ? 200 : 503, { started });
        },
      },
    ],
    ['/readyz', { open: true, answer: () => answerReadiness(readiness(), options) }],
    ['/metrics', { open: true, answer: async () => text(metrics.contentType, await metrics.render()) }],
    ['/status', { open: false, answer: () => json(200, describeStatus(states())) }],
    ['/', { open: false, answer: () => page(renderStatusPage(describeStatus(states()), readiness())) }],
  ]);
}

/** Whoever asks while it is not ready waits for that to change. */
function answerReadiness(readiness: Readiness, { onNotReady }: AdminOptions): Answer {
  if (!readiness.ready) onNotReady?.();
  return json(readiness.ready ? 200 : 503, readiness);
}

function route(
  request: IncomingMessage,
  resources: ReadonlyMap<string, Resource>,
  options: AdminOptions,
): Answer | Promise<Answer> {
  const verdict = judgeRequest(request, options.allowedHosts);
  if (verdict.kind === 'refuse') return refuse(403, verdict.code, verdict.detail);
  const resource = resources.get(request.url?.split('?', 1)[0] ?? '');
  const peer = (options.peerAddress ?? connectionAddress)(request);
  if (resource?.open !== true && !options.exposeAll && !isLocalPeer(peer)) {
    return refuse(403, 'REQUEST_NOT_ALLOWED', 'From another machine only /metrics and the probes may be asked.');
  }
  if (resource === undefined) {
    return refuse(404, 'NOT_FOUND', `Known here: ${[...resources.keys()].join(', ')}.`);
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    // The connection goes with the refusal: its request may have a body, and nobody is going to read it.
    return refuse(405, 'METHOD_NOT_ALLOWED', 'GET or HEAD is expected.', { Allow: 'GET, HEAD', Connection: 'close' });
  }
  return resource.answer();
}

function connectionAddress(request: IncomingMessage): string | undefined {
  return request.socket.remoteAddress;
}

function json(status: number, value: object): Answer {
  return { status, headers: { 'Content-Type': 'application/json' }, body: `${JSON.stringify(value)}\n` };
}

function text(contentType: string, body: string): Answer {
  return { status: 200, headers: { 'Content-Type': contentType }, body };
}

function page(body: string): Answer {
  const headers = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': STATUS_PAGE_POLICY };
  return { status: 200, headers, body };
}

function refuse(status: number, code: string, detail: string, headers: OutgoingHttpHeaders = {}): Answer {
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail, code };
  return {
    status,
    headers: { ...headers, 'Content-Type': 'application/problem+json' },
    body: `${JSON.stringify(problem)}\n`,
  };
}

function send(request: IncomingMessage, response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, {
    ...headers,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}
