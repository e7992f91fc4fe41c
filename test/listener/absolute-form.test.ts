/** The route of a URL that names the upstream, for generated routes and paths: the upstream sees the path of that URL, or nothing. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findProxiedRoute, type ProxiedRoute } from '../../src/listener/absolute-form.ts';
import { createRouteTable } from '../../src/listener/route-table.ts';
import { SidecarError } from '../../src/platform/errors.ts';
import { joinTarget } from '../../src/upstream/request-target.ts';

interface TestRoute extends ProxiedRoute {
  readonly name: string;
}

function route(name: string, baseUrl: string, pathPrefix = '/', stripPrefix = false): TestRoute {
  return { name, pathPrefix, stripPrefix, context: { baseUrl: new URL(baseUrl) } };
}

/** The name of the route and what a client of the sidecar itself would send, or the refusal. */
function find(routes: readonly TestRoute[], path: string, host = 'api.example', port = 80): string {
  const match = findProxiedRoute(createRouteTable(routes), {
    kind: 'upstream',
    authority: { isSecure: false, text: host },
    host,
    port,
    path,
  });
  return match instanceof SidecarError ? match.message : `${match.route.name} ${match.target}`;
}

const ONE = [route('one', 'https://api.example/sales/v1')];
const TWO = [
  route('quotes', 'https://api.example/sales/v1', '/quotes', true),
  route('policies', 'https://api.example/sales/v1', '/policies'),
];
const NESTED = [route('all', 'https://api.example/v1'), route('admin', 'https://api.example/v1/admin', '/admin', true)];

describe('with one route', () => {
  it.each([
    ['/sales/v1/policies?a=/../b', 'one /policies?a=/../b'],
    ['/sales/v1/', 'one /'],
    ['/sales/v1', 'one /'],
    ['/sales/v1?x', 'one /?x'],
    ['/sales/v1//x', 'one //x'],
  ])('%s', (path, expected) => {
    expect(find(ONE, path)).toBe(expected);
  });

  it.each([
    '/',
    '/sales',
    '/sales/v',
    '/sales/v10/x',
    '/Sales/v1/x',
    '/sales/v1;a/x',
    '/%73ales/v1/x',
    '/x?/sales/v1/',
    '//sales/v1/x',
  ])('%s is not below the base URL', (path) => {
    expect(find(ONE, path)).toContain('not below that of the base URL, /sales/v1');
  });

  it.each([
    '/sales/v1/../x',
    '/sales/v1/%2e%2e/x',
    '/sales/v1/..%2fx',
    '/sales/v1/%252e%252e/x',
    '/sales/v1\\..\\x',
    '/sales/v1/..;/x',
  ])('%s is refused for its dot segment or backslash', (path) => {
    expect(find(ONE, path)).toMatch(/dot segment|backslash/);
  });
});

it('routes with one base URL are chosen by their prefix where the upstream sees it, and a path of several is refused', () => {
  expect(find(TWO, '/sales/v1/policies/1')).toContain('several routes');
  expect(find([TWO[1]!], '/sales/v1/policies/1')).toBe('policies /policies/1');
  expect(find([TWO[0]!], '/sales/v1/x')).toBe('quotes /quotes/x');
  expect(find([TWO[1]!], '/sales/v1/other')).toContain('no route leads');
});

it('the longest base URL wins, and a path that could be read as below another is refused', () => {
  expect(find(NESTED, '/v1/admin/x')).toBe('admin /admin/x');
  expect(find(NESTED, '/v1/admin')).toBe('admin /admin');
  expect(find(NESTED, '/v1/x')).toBe('all /x');
  for (const path of ['/v1/%61dmin/x', '/v1/admin%2fx', '/v1//admin/x', '/v1/admin;x/y', '/v1/%2561dmin/x'])
    expect(find(NESTED, path)).toContain('several routes');
});

it('a server with several ports is found by its own port first, then by a default one', () => {
  const routes = [route('tls', 'https://api.example/'), route('plain', 'http://api.example:8080/', '/plain', true)];
  expect(find(routes, '/x', 'api.example', 443)).toBe('tls /x');
  expect(find(routes, '/x', 'api.example', 8080)).toBe('plain /plain/x');
  expect(find(routes, '/x', 'api.example', 80)).toContain('several routes');
});

it('the upstream sees the path of the URL, below its base, by the route that a client of the sidecar itself would get', () => {
  const segment = fc.constantFrom(
    'a',
    'b',
    'v1',
    '%61',
    '..',
    '%2e%2e',
    '',
    'a%2fb',
    '%2f',
    ';',
    'a;b',
    '.',
    '%5c',
    'ä',
  );
  const plainPath = fc
    .array(fc.constantFrom('a', 'b', 'v1'), { maxLength: 3 })
    .map((names) => names.map((name) => `/${name}`).join(''));
  const anyRoute = fc.record({ base: plainPath, slash: fc.boolean(), prefix: plainPath, stripPrefix: fc.boolean() });
  fc.assert(
    fc.property(
      fc.uniqueArray(anyRoute, { minLength: 1, maxLength: 4, selector: ({ prefix }) => prefix }),
      fc.array(segment, { maxLength: 6 }),
      fc.constantFrom('', '?', '?x=/a/../b'),
      (given, segments, query) => {
        const routes = given.map(({ base, slash, prefix, stripPrefix }, index) =>
          route(String(index), `https://api.example${base}${slash ? '/' : ''}`, prefix || '/', stripPrefix),
        );
        const table = createRouteTable(routes);
        const path = `/${segments.join('/')}${query}`;
        const match = findProxiedRoute(table, {
          kind: 'upstream',
          authority: { isSecure: false, text: 'api.example' },
          ...{ host: 'api.example', port: 80, path },
        });
        if (match instanceof SidecarError) return;
        const base = match.route.context.baseUrl.pathname.replace(/\/$/, '');
        expect(path).toMatch(new RegExp(`^${base}(?:[/?]|$)`));
        expect(decodeURIComponent(path.split('?')[0] ?? '')).not.toMatch(/(?:^|[/\\])\.\.?(?:[/\\;]|$)/);
        const own = table.match(match.target);
        expect(own).toMatchObject({ kind: 'matched', route: match.route });
        const joined = joinTarget(base, match.target, own.kind === 'matched' ? own.strippedLength : 0);
        // A base URL without its slash is the one path that such a client cannot ask for.
        const withoutSlash = (text: string): string => text.replace(/\/(?=\?|$)/, '');
        expect(typeof joined === 'string' && withoutSlash(joined)).toBe(withoutSlash(path));
      },
    ),
    { numRuns: 3000 },
  );
});
