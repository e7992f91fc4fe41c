/** Decides from a request's head whether it is forwarded, to which route, and how long it may take. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import { SidecarError } from '../platform/errors.ts';
import type { Exchange, RouteContext } from '../exchange/exchange.ts';
import { RequestLifetime } from '../exchange/request-lifetime.ts';
import { joinTarget, withoutTrailingSlash } from '../upstream/request-target.ts';
import type { AllowListCheck } from './allow-list.ts';
import { findProxiedRoute, type UpstreamTarget } from './absolute-form.ts';
import type { Guard } from './guard.ts';
import type { RoutePath, RouteTable } from './route-table.ts';
import type { ServeUpgrade } from './websocket/websocket.ts';
import type { RequestHead } from './request-head.ts';
import { NO_PREFERENCES, readPreferences } from './request-preferences.ts';

export interface Route extends RoutePath {
  readonly context: RouteContext;
  /** Undefined allows every method. */
  readonly methods: readonly string[] | undefined;
  /** Arrival to response head, milliseconds; a client may ask for less. */
  readonly request: { readonly deadlineMs: number };
  /** Serves WebSocket upgrades; undefined rejects them. */
  readonly serveUpgrade: ServeUpgrade | undefined;
}

export interface RequestCheckOptions {
  readonly routes: RouteTable<Route>;
  readonly guard: Guard;
  /** Undefined allows every request. */
  readonly checkAllowList: AllowListCheck | undefined;
  readonly clock: Clock;
}

export type CheckedRequest =
  | RejectedRequest
  | { readonly kind: 'preflight'; readonly corsOrigin: string }
  | (SelectedRoute &
      Pick<Exchange, 'corsOrigin' | 'queueClass' | 'lifetime'> & {
        readonly kind: 'passed';
      });

interface RejectedRequest {
  readonly kind: 'rejected';
  readonly error: SidecarError;
  /** The route of its path; undefined when it has none, or was rejected before. */
  readonly route: Route | undefined;
}

interface SelectedRoute extends Pick<Exchange, 'path' | 'target' | 'clientPath'> {
  readonly route: Route;
}

/** @param arrivedAt monotonic */
export function checkRequest(
  { routes, guard, checkAllowList, clock }: RequestCheckOptions,
  request: IncomingMessage,
  head: RequestHead,
  arrivedAt: number,
): CheckedRequest {
  const guarded = guard.check(request, head);
  if (guarded instanceof SidecarError) return reject(guarded, undefined);
  const { corsOrigin, upstream, isPreflight } = guarded;
  if (isPreflight && corsOrigin !== undefined) return { kind: 'preflight', corsOrigin };
  const { method = '' } = request;
  const selection =
    upstream === undefined ? selectRoute(routes, guarded.target, method) : selectProxiedRoute(routes, upstream, method);
  if ('error' in selection) return selection;
  const { route, path, target, clientPath } = selection;
  const denied = checkAllowList?.(method, target);
  if (denied !== undefined) return reject(denied, route);
  if (route.methods?.includes(method) === false)
    return reject(createRouteMethodError(routes.routes, route, method), route);
  const preferences = head.hasOptional ? readPreferences(head) : NO_PREFERENCES;
  if (preferences instanceof SidecarError) return reject(preferences, route);
  const { timeoutMs = Infinity, queueClass } = preferences;
  const { deadlineMs } = route.request;
  const lifetime =
    timeoutMs < deadlineMs
      ? new RequestLifetime(clock, timeoutMs, arrivedAt, 'x-sidecar-timeout-ms of the request')
      : new RequestLifetime(clock, deadlineMs, arrivedAt);
  return { kind: 'passed', route, path, target, clientPath, corsOrigin, queueClass, lifetime };
}

function reject(error: SidecarError, route: Route | undefined): RejectedRequest {
  return { kind: 'rejected', error, route };
}

/** For a target that names the upstream: the client's paths are those of the upstream, base path included. */
function selectProxiedRoute(
  routes: RouteTable<Route>,
  upstream: UpstreamTarget,
  method: string,
): RejectedRequest | SelectedRoute {
  const match = findProxiedRoute(routes, upstream, method);
  if (match instanceof SidecarError) return reject(match, undefined);
  const { route, target } = match;
  const basePath = withoutTrailingSlash(route.context.baseUrl.pathname);
  return { route, path: upstream.path, target, clientPath: (path) => basePath + path };
}

/** The path that is sent is below the base of the route whose token it carries: both come from one selection. */
function selectRoute(routes: RouteTable<Route>, target: string, method: string): RejectedRequest | SelectedRoute {
  const match = routes.match(target, method);
  const route = match.kind === 'matched' ? match.route : undefined;
  const strippedLength = match.kind === 'matched' ? match.strippedLength : 0;
  const path = joinTarget(route?.context.baseUrl.pathname ?? '/', target, strippedLength);
  if (path instanceof SidecarError) return reject(path, route);
  if (route !== undefined) return { route, path, target, clientPath: undefined };
  const error =
    match.kind === 'ambiguous'
      ? new SidecarError('BAD_REQUEST', 'the path could belong to several routes: send it without unneeded escapes')
      : new SidecarError(
          'REQUEST_NOT_ALLOWED',
          `no route has this path; the routes are ${listPrefixes(routes.routes)}`,
        );
  return reject(error, undefined);
}

const MAX_LISTED_PREFIXES = 10;

function listPrefixes(routes: readonly Route[]): string {
  const prefixes = [...new Set(routes.map(({ pathPrefix }) => pathPrefix))];
  const listed = prefixes.slice(0, MAX_LISTED_PREFIXES);
  const rest = prefixes.length - listed.length;
  return `${listed.join(', ')}${rest > 0 ? ` and ${String(rest)} more` : ''}`;
}

/** No route of the path serves the method: it allows those of all. */
function createRouteMethodError(
  routes: readonly Route[],
  { pathPrefix, context }: Route,
  method: string,
): SidecarError {
  const allow = routes.filter((one) => one.pathPrefix === pathPrefix).flatMap(({ methods = [] }) => methods);
  return new SidecarError('METHOD_NOT_ALLOWED', `${method} is not allowed on the route ${context.route}`, { allow });
}
