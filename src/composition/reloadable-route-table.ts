/**
 * The table of the configured routes. A reload builds it again from parts that persist (pools, throttles, token sources), so that each
 * request has the settings of one configuration from its beginning to its end.
 */
import type { Config, RouteConfig } from '../config/config.ts';
import type { ExchangeParts } from '../exchange/exchange.ts';
import { createRefusalRules } from '../exchange/refusals/refusal-rules.ts';
import type { Route } from '../listener/request-check.ts';
import { createRouteTable, type RouteTable } from '../listener/route-table.ts';
import { joinTarget, withoutTrailingSlash } from '../upstream/request-target.ts';

/** What a route keeps when its settings change. */
export type PersistentRouteParts = Omit<ExchangeParts, 'clientPath' | keyof ReturnType<typeof readRouteSettings>> &
  Pick<Route, 'serveUpgrade'>;

/**
 * The table, and `rebuild`, which changes it.
 * @param persistent by name of the route; for each that is configured, now or later
 */
export function createReloadableRouteTable(config: Config, persistent: ReadonlyMap<string, PersistentRouteParts>) {
  // A copy: routes of an earlier configuration go on using their own table.
  const table: RouteTable<Route> = { ...buildRouteTable(config, persistent) };
  const rebuild = (next: Config): void => void Object.assign(table, buildRouteTable(next, persistent));
  return { table, rebuild };
}

function buildRouteTable(config: Config, persistent: ReadonlyMap<string, PersistentRouteParts>): RouteTable<Route> {
  const table: RouteTable<Route> = createRouteTable(
    config.routes.map((route): Route => {
      const found = persistent.get(route.name);
      if (found === undefined) throw new Error(`the route ${route.name} did not exist at the start`);
      const { serveUpgrade, ...kept } = found;
      const clientPath = (path: string) => findClientPath(table, route, path);
      const parts: ExchangeParts = { ...kept, ...readRouteSettings(route, config), clientPath };
      return { ...route, parts, serveUpgrade };
    }),
  );
  return table;
}

/** The settings that the exchange reads. */
function readRouteSettings(
  { name, pathPrefix, stripPrefix, upstream, retry, throttle }: RouteConfig,
  { response }: Config,
) {
  const ownPath = stripPrefix || pathPrefix === '/' ? '' : pathPrefix;
  return {
    route: name,
    retry,
    refusals: createRefusalRules(throttle.refusals),
    timeouts: upstream,
    cookieRoot: response.cookies === 'adapt' ? ownPath : undefined,
  };
}

/** The client's path for a path below a route's base; undefined when a request to it would reach another resource. */
function findClientPath(table: RouteTable<Route>, route: RouteConfig, path: string): string | undefined {
  const clientPath = (route.stripPrefix && route.pathPrefix !== '/' ? route.pathPrefix : '') + path || '/';
  const match = table.match(clientPath);
  if (match.kind !== 'matched') return undefined;
  const { baseUrl } = match.route.parts;
  const reached = joinTarget(baseUrl.pathname, clientPath, match.strippedLength);
  const intended = joinTarget(route.upstream.baseUrl.pathname, path || '/', path === '' ? 1 : 0);
  const isSame =
    typeof reached === 'string' &&
    typeof intended === 'string' &&
    withoutTrailingSlash(reached) === withoutTrailingSlash(intended);
  return isSame && baseUrl.origin === route.upstream.baseUrl.origin ? clientPath : undefined;
}
