/**
 * The routes as they are configured now: joined anew from the parts that last whenever the configuration changes, so that each request
 * has from its beginning to its end the settings of one configuration.
 */
import type { Config, RouteConfig } from '../config/config.ts';
import type { ExchangeParts } from '../exchange/exchange.ts';
import type { Route } from '../listener/request-admission.ts';
import { createRouteTable, type RouteTable } from '../listener/route-table.ts';
import { joinTarget } from '../upstream/request-target.ts';

/** What a route keeps when its settings change. */
export type PersistentRouteParts = Omit<ExchangeParts, 'clientPath' | keyof ReturnType<typeof readRouteSettings>> &
  Pick<Route, 'serveUpgrade'>;

/**
 * The table of the routes, which changes with `rebuild`.
 * @param lasting by route; for each that is configured, now or later
 */
export function createReloadableRouteTable(config: Config, lasting: ReadonlyMap<string, PersistentRouteParts>) {
  let current = buildRouteTable(config, lasting);
  const table: RouteTable<Route> = {
    get routes() {
      return current.routes;
    },
    match: (target) => current.match(target),
  };
  const rebuild = (next: Config): void => {
    current = buildRouteTable(next, lasting);
  };
  return { table, rebuild };
}

function buildRouteTable(config: Config, lasting: ReadonlyMap<string, PersistentRouteParts>): RouteTable<Route> {
  const table: RouteTable<Route> = createRouteTable(
    config.routes.map((route): Route => {
      const found = lasting.get(route.name);
      if (found === undefined) throw new Error(`the route ${route.name} was not there at the start`);
      const { serveUpgrade, ...kept } = found;
      const own = { clientPath: (path: string) => findClientPath(table, route, path) };
      const parts: ExchangeParts = { ...kept, ...readRouteSettings(route, config), ...own };
      return { ...route, deadlineMs: route.request.deadlineMs, parts, serveUpgrade };
    }),
  );
  return table;
}

/** What is told to the exchange as it is configured. */
function readRouteSettings({ name, upstream, retry }: RouteConfig, { listen }: Config) {
  return {
    route: name,
    retry,
    requestTimeoutMs: upstream.requestTimeoutMs,
    bodyIdleTimeoutMs: upstream.bodyIdleTimeoutMs,
    requiredHeader: listen.requiredHeader?.name.toLowerCase(),
  };
}

/** The path that a client may be given for one below a route's base: asked for, it leads to the same resource. */
function findClientPath(table: RouteTable<Route>, route: RouteConfig, path: string): string | undefined {
  const seen = (route.stripPrefix && route.pathPrefix !== '/' ? route.pathPrefix : '') + path || '/';
  const choice = table.match(seen);
  if (choice.kind !== 'chosen') return undefined;
  const { baseUrl } = choice.route.parts.upstream;
  const led = joinTarget(baseUrl.pathname, seen, choice.strippedLength);
  const meant = joinTarget(route.upstream.baseUrl.pathname, path || '/', path === '' ? 1 : 0);
  const isSame =
    led.kind === 'joined' &&
    meant.kind === 'joined' &&
    removeTrailingSlash(led.path) === removeTrailingSlash(meant.path);
  return isSame && baseUrl.origin === route.upstream.baseUrl.origin ? seen : undefined;
}

/** The base itself is asked for with and without it. */
function removeTrailingSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}
