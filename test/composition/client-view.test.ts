/**
 * Configured routes, base paths and prefixes, and what their clients make of rewritten references and cookies: a reference leads to the
 * resource that the upstream meant, and a cookie jar (tough-cookie) sends a cookie through the sidecar where it would have sent it directly.
 */
import fc from 'fast-check';
import { CookieJar } from 'tough-cookie';
import { describe, expect, it } from 'vitest';
import { describeClientView } from '../../src/exchange/relay.ts';
import type { Route } from '../../src/listener/request-check.ts';
import type { RouteTable } from '../../src/listener/route-table.ts';
import { buildRouteTable, type PersistentRouteParts } from '../../src/composition/routes.ts';
import type { ClientView } from '../../src/upstream/client-view.ts';
import { adaptCookie } from '../../src/upstream/cookies.ts';
import { rewriteLink, rewriteReference, rewriteRefresh } from '../../src/upstream/references.ts';
import { joinTarget } from '../../src/upstream/request-target.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { BASE_ENV, scratchFile } from '../config/base-env.ts';

const SIDECAR = 'http://localhost:18080';

interface Layout {
  readonly base: string;
  readonly routes: readonly { readonly pathPrefix: string; readonly stripPrefix: boolean; readonly baseUrl: string }[];
}

const basePath = fc.constantFrom('', '/v1', '/sales/v1/', '/quotes');
const host = fc.constantFrom('https://api.partner.example', 'http://api.partner.example', 'https://other.example:8443');
const baseUrl = fc.tuple(host, basePath).map(([origin, path]) => origin + path);
const anyLayout: fc.Arbitrary<Layout> = fc.record({
  base: baseUrl,
  routes: fc.uniqueArray(
    fc.record({
      pathPrefix: fc.constantFrom('/quotes', '/quotes/live', '/policies', '/v1'),
      stripPrefix: fc.boolean(),
      baseUrl,
    }),
    { selector: ({ pathPrefix }) => pathPrefix, maxLength: 3 },
  ),
});
/** Some of them: to load a configuration takes longer than to try it. */
const layout = fc.constantFrom(...fc.sample(anyLayout, 100));
const segment = fc.constantFrom('quotes', 'live', 'policies', 'v1', 'sales', 'a', '%41', 'a%2fb', 'x;y', 'e=f', '');
const path = fc.array(segment, { maxLength: 4 }).map((segments) => `/${segments.join('/')}`);

const tables = new Map<string, RouteTable<Route>>();

function tableOf(given: Layout): RouteTable<Route> {
  const key = JSON.stringify(given);
  const table = tables.get(key) ?? createTable(given);
  tables.set(key, table);
  return table;
}

function createTable({ base, routes }: Layout): RouteTable<Route> {
  const entries = routes.map((route, index) => ({ name: `r${String(index)}`, credential: 'default', ...route }));
  const file = scratchFile(JSON.stringify({ allowInsecureHttp: true, routes: entries }));
  const loaded = loadConfig({ env: { ...BASE_ENV, SIDECAR_BASE_URL: base }, file });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const persistent = new Map(
    loaded.config.routes.map((route) => [
      route.name,
      { baseUrl: route.upstream.baseUrl, addedHeaders: {} } as PersistentRouteParts,
    ]),
  );
  return buildRouteTable(loaded.config, persistent);
}

interface Sent {
  readonly route: Route;
  /** What the upstream receives. */
  readonly url: string;
  readonly view: ClientView;
}

/** What a request of a client becomes; undefined when it is refused. */
function sendThrough(table: RouteTable<Route>, target: string): Sent | undefined {
  const match = table.match(target);
  if (match.kind !== 'matched') return undefined;
  const { context } = match.route;
  const path = joinTarget(context.baseUrl.pathname, target, match.strippedLength);
  if (typeof path !== 'string') return undefined;
  const view = describeClientView(context, { path });
  return { route: match.route, url: context.baseUrl.origin + path, view };
}

/** A slash at the end of a whole base cannot be expressed by every client. */
function withoutLastSlash(url: string): string {
  return url.replace(/\/(?=$|[?#])/, '');
}

describe('a reference', () => {
  const reference = fc
    .tuple(
      fc.constantFrom(
        '',
        'https://api.partner.example',
        'http://api.partner.example',
        '//api.partner.example',
        'https://me:pw@api.partner.example',
      ),
      fc.oneof(
        path,
        path.map((text) => text.slice(1)),
        fc.constantFrom('..', '../..', './a', '', '/sales/v1', '/v1/../quotes'),
      ),
      fc.constantFrom('', '?', '?a=b', "?x=/y'z", '#f', '?a#'),
    )
    .map((parts) => parts.join(''));

  it('leads the client to the resource that it names for a client of the upstream', () => {
    let onSidecar = 0;
    fc.assert(
      fc.property(layout, path, reference, (given, target, text) => {
        const table = tableOf(given);
        const sent = sendThrough(table, target);
        if (sent === undefined) return;
        const meant = URL.parse(text, sent.url);
        if (meant === null) {
          expect(rewriteReference(text, sent.view)).toBe(text);
          return;
        }
        meant.username = meant.password = '';
        for (const rewritten of rewriteEverywhere(text, sent.view)) {
          const followed = new URL(rewritten, SIDECAR + target);
          followed.username = followed.password = '';
          if (followed.origin !== SIDECAR) {
            expect(followed.href).toBe(meant.href);
            continue;
          }
          onSidecar++;
          const reached = sendThrough(table, followed.href.slice(SIDECAR.length).replace(/#.*/, ''));
          if (meant.host === sent.view.baseUrl.host) meant.protocol = sent.view.baseUrl.protocol;
          expect(withoutLastSlash((reached?.url ?? 'nothing') + followed.hash)).toBe(
            withoutLastSlash(meant.href.replace(/#$/, '')),
          );
        }
      }),
      { numRuns: 2000 },
    );
    expect(onSidecar).toBeGreaterThan(500);
  });

  function rewriteEverywhere(text: string, view: ClientView): string[] {
    const own = [rewriteReference(text, view)];
    own.push(/^<(.*)>; rel=next$/.exec(rewriteLink(`<${text}>; rel=next`, view))?.[1] ?? 'not found');
    if (text !== '') own.push(/^5; url="(.*)"$/.exec(rewriteRefresh(`5; url="${text}"`, view))?.[1] ?? 'not found');
    return own;
  }
});

describe('a cookie', () => {
  /** As clients that know no exception for localhost. */
  function jarWith(cookie: string, url: string): CookieJar {
    const jar = new CookieJar(undefined, { allowSecureOnLocal: false, rejectPublicSuffixes: false });
    jar.setCookieSync(cookie, url, { ignoreError: true });
    return jar;
  }
  const isSent = (jar: CookieJar, url: string): boolean => jar.getCookieStringSync(url) !== '';
  const attributes = fc.subarray([
    'HttpOnly',
    'Secure',
    'SameSite=None',
    'Max-Age=60',
    'Domain=.API.partner.example',
    'Domain=partner.example',
  ]);
  /** Whether a client of the sidecar can be given the same path: it is above the route, or within it. */
  function isOfRoute(
    own: string,
    { pathPrefix }: Route,
    { baseUrl, cookieRoot = '', clientPath }: ClientView,
  ): boolean {
    const base = baseUrl.pathname.replace(/\/$/, '');
    if (`${base}${cookieRoot}/`.startsWith(`${own.replace(/\/$/, '')}/`)) return true;
    const found = own.startsWith(`${base}/`) ? clientPath(own.slice(base.length)) : undefined;
    return found !== undefined && `${found}/`.startsWith(pathPrefix === '/' ? '/' : `${pathPrefix}/`);
  }
  const cookiePath = fc.oneof(
    path,
    fc.constantFrom('/', '/sales', '/sales/v1', '/v1/quotes', '/quotes/', '/policies', '/v1/policies', 'x', ''),
  );

  it('is sent to the requests of its route to which it would be sent directly', () => {
    const seen = { sent: 0, kept: 0 };
    fc.assert(
      fc.property(layout, path, path, attributes, fc.option(cookiePath), (given, login, later, others, own) => {
        const table = tableOf({ ...given, base: given.base.replace('http:', 'https:') });
        const [first, second] = [sendThrough(table, login), sendThrough(table, later)];
        if (first === undefined || second?.route !== first.route) return;
        const cookie = ['sid=1', ...others, ...(own === null ? [] : [`Path=${own}`])].join('; ');
        const isPath = own?.startsWith('/') === true;
        const canBeSame = isPath ? isOfRoute(own, first.route, first.view) : first.route.pathPrefix === '/';
        // To the prefix `/` no path can be limited.
        if (!canBeSame && first.route.pathPrefix === '/') return;
        const [origin, secondUrl] = [first.url, second.url].map((url) => url.replace('http:', 'https:'));
        const direct = isSent(jarWith(cookie, origin ?? ''), secondUrl ?? '');
        const proxied = isSent(jarWith(adaptCookie(cookie, first.view), SIDECAR + login), SIDECAR + later);
        if (direct) seen.sent++;
        else seen.kept++;
        const expected = direct || (proxied && !canBeSame);
        expect(`${cookie} for ${later}: ${String(proxied)}`).toBe(`${cookie} for ${later}: ${String(expected)}`);
      }),
      { numRuns: 4000 },
    );
    expect(Math.min(seen.sent, seen.kept)).toBeGreaterThan(100);
  });

  it('is sent to no route beside its own', () => {
    let compared = 0;
    fc.assert(
      fc.property(layout, path, path, fc.option(cookiePath), (given, login, later, own) => {
        const table = tableOf(given);
        const [first, second] = [sendThrough(table, login), sendThrough(table, later)];
        if (first === undefined || second === undefined) return;
        const [ownPrefix, otherPrefix] = [first.route.pathPrefix, second.route.pathPrefix];
        if (ownPrefix === '/' || `${otherPrefix}/`.startsWith(`${ownPrefix}/`)) return;
        compared++;
        const adapted = adaptCookie(own === null ? 'sid=1' : `sid=1; Path=${own}`, first.view);
        const isSentThere = isSent(jarWith(adapted, SIDECAR + login), SIDECAR + later);
        expect(`${adapted}, set by ${login}, for ${later}: ${String(isSentThere)}`).toMatch(/: false$/);
      }),
      { numRuns: 6000 },
    );
    expect(compared).toBeGreaterThan(50);
  });

  it('is sent to no route beside its own by a client that names the upstream', () => {
    const table = tableOf({
      base: 'https://api.partner.example/all',
      routes: ['/quotes', '/policies'].map((pathPrefix) => ({
        ...{ pathPrefix, stripPrefix: true },
        baseUrl: `https://api.partner.example/v1${pathPrefix}`,
      })),
    });
    const { context } = sendThrough(table, '/quotes/a')!.route;
    const view = describeClientView(context, { path: '/v1/quotes/login', clientPath: (below) => `/v1/quotes${below}` });
    for (const cookie of ['sid=1', 'sid=1; Path=/v1/policies', 'sid=1; Path=/all', 'sid=1; Path=/v1', 'sid=1; Path=/'])
      expect(adaptCookie(cookie, view)).toBe('sid=1; Path=/v1/quotes');
    expect(adaptCookie('sid=1; Path=/v1/quotes/a', view)).toBe('sid=1; Path=/v1/quotes/a');
  });
});

it('a request in absolute-form that names the upstream keeps its base path in references and cookies', () => {
  const table = tableOf({ base: 'https://api.partner.example/sales/v1', routes: [] });
  const { context } = sendThrough(table, '/')!.route;
  const view = describeClientView(context, { path: '/sales/v1/login', clientPath: (below) => `/sales/v1${below}` });
  expect(rewriteReference('https://api.partner.example/sales/v1/x', view)).toBe('/sales/v1/x');
  expect(adaptCookie('sid=1; Secure; Path=/sales/v1/x', view)).toBe('sid=1; Path=/sales/v1/x');
});
