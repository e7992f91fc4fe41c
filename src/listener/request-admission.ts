/** Decides from a request's head alone whether it may go on, and where to and how long. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import { SidecarError } from '../platform/errors.ts';
import type { ExchangeParts } from '../exchange/exchange.ts';
import { RequestLifetime } from '../exchange/request-lifetime.ts';
import type { QueueClass } from '../throttle/throttle.ts';
import { joinTarget } from '../upstream/request-target.ts';
import type { AllowListCheck } from './allow-list.ts';
import { guardRequest, type GuardOptions } from './guard.ts';
import type { RoutePath, RouteTable } from './route-table.ts';
import type { ServeUpgrade } from './websocket/websocket.ts';
import { readPreferences } from './request-preferences.ts';

/** One of the ways out. */
export interface Route extends RoutePath {
  readonly parts: ExchangeParts;
  /** Undefined allows every method. */
  readonly methods: readonly string[] | undefined;
  /** Arrival to response head, milliseconds; a client may shorten it. */
  readonly deadlineMs: number;
  /** Serves WebSocket upgrades; undefined refuses them. */
  readonly serveUpgrade: ServeUpgrade | undefined;
}

export interface RequestAdmissionOptions {
  readonly routes: RouteTable<Route>;
  readonly guard: GuardOptions;
  readonly checkAllowList: AllowListCheck;
  readonly clock: Clock;
}

export type RequestAdmission =
  | {
      readonly kind: 'refused';
      readonly error: SidecarError;
      /** The one that it would have taken, if that is known. */
      readonly route: Route | undefined;
    }
  /** A CORS preflight of an allowed page: answered here. */
  | { readonly kind: 'preflight'; readonly corsOrigin: string }
  | {
      readonly kind: 'admitted';
      readonly route: Route;
      /** Path and query to ask of the upstream. */
      readonly path: string;
      readonly corsOrigin: string | undefined;
      readonly queueClass: QueueClass;
      readonly lifetime: RequestLifetime;
    };

/**
 * @param arrivedAt monotonic
 * @param fault with which every request is refused now. Default: none
 */
export function admitRequest(
  options: RequestAdmissionOptions,
  request: IncomingMessage,
  arrivedAt: number,
  fault?: SidecarError,
): RequestAdmission {
  if (fault !== undefined) return { kind: 'refused', error: fault, route: undefined };
  const { guard, routes, clock } = options;
  const method = request.method ?? '';
  const verdict = guardRequest(guard, {
    method,
    target: request.url ?? '',
    httpVersion: request.httpVersion,
    rawHeaders: request.rawHeaders,
  });
  if (verdict.kind === 'refused') return { ...verdict, route: undefined };
  const { corsOrigin, target } = verdict;
  if (verdict.isPreflight && corsOrigin !== undefined) return { kind: 'preflight', corsOrigin };
  const way = selectRoute(routes, target);
  if (way.kind === 'refused') return way;
  const { route, path } = way;
  const refusal = options.checkAllowList(method, target) ?? checkRouteMethod(route, method);
  if (refusal !== undefined) return { kind: 'refused', error: refusal, route };
  const wishes = readPreferences(request.headers);
  if (wishes.kind === 'refused')
    return { kind: 'refused', error: new SidecarError('BAD_REQUEST', wishes.reason), route };
  const { timeoutMs = Infinity, queueClass } = wishes;
  const lifeline = new RequestLifetime(clock, Math.min(route.deadlineMs, timeoutMs), arrivedAt);
  return { kind: 'admitted', route, path, corsOrigin, queueClass, lifetime: lifeline };
}

type RouteSelection =
  | Extract<RequestAdmission, { kind: 'refused' }>
  | { readonly kind: 'way'; readonly route: Route; readonly path: string };

/** Route and path belong together: the path that is sent is below the base of the route whose token it carries. */
function selectRoute(routes: RouteTable<Route>, target: string): RouteSelection {
  const choice = routes.match(target);
  const route = choice.kind === 'chosen' ? choice.route : undefined;
  const strippedLength = choice.kind === 'chosen' ? choice.strippedLength : 0;
  const joined = joinTarget(route?.parts.upstream.baseUrl.pathname ?? '/', target, strippedLength);
  if (joined.kind === 'refused') return { kind: 'refused', error: new SidecarError('BAD_REQUEST', joined.why), route };
  if (route !== undefined) return { kind: 'way', route, path: joined.path };
  const error =
    choice.kind === 'ambiguous'
      ? new SidecarError(
          'BAD_REQUEST',
          'the path could be read as that of another route: send it without needless escapes',
        )
      : new SidecarError(
          'REQUEST_NOT_ALLOWED',
          `no route takes this path; there are: ${describePrefixes(routes.routes)}`,
        );
  return { kind: 'refused', error, route };
}

const MAX_LISTED_PREFIXES = 10;

function describePrefixes(routes: readonly Route[]): string {
  const shown = routes.slice(0, MAX_LISTED_PREFIXES).map(({ pathPrefix }) => pathPrefix);
  const left = routes.length - shown.length;
  return `${shown.join(', ')}${left > 0 ? ` and ${String(left)} more` : ''}`;
}

function checkRouteMethod({ methods, parts }: Route, method: string): SidecarError | undefined {
  if (methods === undefined || methods.includes(method)) return undefined;
  return new SidecarError('METHOD_NOT_ALLOWED', `${method} is not allowed on the route ${parts.route}`, {
    allow: methods,
  });
}
