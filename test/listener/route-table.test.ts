/** Which route a path matches, and that every reading of the path matches the same one. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRouteTable } from '../../src/listener/route-table.ts';
import type { RoutePath } from '../../src/listener/route-table.ts';
import { joinTarget } from '../../src/upstream/request-target.ts';
import { pathTargets as target, READERS, readOrNothing } from '../support/path-readers.ts';

const ALL = ['/', '/quotes', '/quotes/special', '/policies', '/a.b/~c'];

function routesOf(prefixes: readonly string[], stripPrefix = false): RoutePath[] {
  return prefixes.map((pathPrefix) => ({ pathPrefix, stripPrefix }));
}

/** The prefix of the route that is taken, or why none is. */
function taken(target: string, prefixes: readonly string[] = ALL): string {
  const match = createRouteTable(routesOf(prefixes)).match(target);
  return match.kind === 'matched' ? match.route.pathPrefix : match.kind;
}

describe('the longest prefix of whole segments', () => {
  it.each([
    ['/quotes', '/quotes'],
    ['/quotes/', '/quotes'],
    ['/quotes/1', '/quotes'],
    ['/quotes?x=/policies', '/quotes'],
    ['/quotesx', '/'],
    ['/quotes.', '/'],
    ['/Quotes', '/'],
    ['/quotes/special', '/quotes/special'],
    ['/quotes/specials', '/quotes'],
    ['/quotes/special/1?', '/quotes/special'],
    ['/x/quotes', '/'],
    ['/', '/'],
    ['/?/quotes', '/'],
    ['/a.b/~c/d', '/a.b/~c'],
    ['/a.b', '/'],
    // A slash within a name below the prefix is the upstream's own business.
    ['/quotes/a%2fb;c', '/quotes'],
    ['/quotes//a', '/quotes'],
  ])('%s matches %s', (target, prefix) => {
    expect(taken(target)).toBe(prefix);
  });

  it('matches none when no prefix fits', () => {
    expect(taken('/quotes', ['/quotes'])).toBe('/quotes');
    expect(taken('/policies', ['/quotes'])).toBe('none');
    expect(taken('/', ['/quotes'])).toBe('none');
  });

  it('does not depend on the order of the routes', () => {
    expect(taken('/quotes/special/1', [...ALL].reverse())).toBe('/quotes/special');
  });
});

describe('a path that a server could read as one of another route', () => {
  it.each([
    '//quotes',
    // RFC 3986 §6.2.2.2 has these two mean the same as unescaped; not every server does.
    '/%71uotes/1',
    '/a%2Eb/%7ec',
    '/quotes%2f1',
    '/quotes%2Fspecial',
    '/quotes;v=1/1',
    '/quotes%3bv=1',
    '/quotes%5cspecial',
    '/quotes%00',
    '/quotes%20/1',
    '/quotes%252f1',
    '/%2571uotes',
    '/%c1%b1uotes',
    '/%u0071uotes',
    '/quotes//special',
    '/quotes/special;x',
    '/quotes/%73pecial/1',
    '/policies%23/1',
    '/policies%3F',
  ])('%s matches none', (target) => {
    expect(taken(target)).toBe('ambiguous');
  });

  it('is accepted when there is only one route', () => {
    expect(taken('//quotes%2f..;x', ['/'])).toBe('/');
  });
});

describe('a prefix that is stripped', () => {
  const table = createRouteTable(routesOf(ALL, true));
  const pathOf = (base: string, target: string): string => {
    const match = table.match(target);
    if (match.kind !== 'matched') return match.kind;
    const joined = joinTarget(base, target, match.strippedLength);
    return typeof joined === 'string' ? joined : 'rejected';
  };

  it.each([
    ['/quotes/1?x=1', '/v1/1?x=1', '/1?x=1'],
    ['/quotes', '/v1', '/'],
    ['/quotes?x', '/v1?x', '/?x'],
    ['/quotes/', '/v1/', '/'],
    ['/quotes/special/1', '/v1/1', '/1'],
    ['/other/1', '/v1/other/1', '/other/1'],
    ['/', '/v1/', '/'],
  ])('of %s leaves %s, or %s at the root', (target, belowBase, atRoot) => {
    expect([pathOf('/v1', target), pathOf('/', target)]).toEqual([belowBase, atRoot]);
  });
});

describe('for every path', () => {
  const strips = fc.boolean();

  const prefixIn = (path: string): string =>
    ALL.filter((prefix) => prefix === '/' || path === prefix || path.startsWith(`${prefix}/`)).reduce((one, other) =>
      other.length > one.length ? other : one,
    );

  it('every reading of the sent path has the prefix of the route whose token is sent', () => {
    let sent = 0;
    fc.assert(
      fc.property(target, (given) => {
        const match = createRouteTable(routesOf(ALL)).match(given);
        if (match.kind !== 'matched' || typeof joinTarget('/', given) !== 'string') return;
        sent++;
        const path = given.split('?', 1)[0] ?? '';
        for (const read of READERS) {
          const seen = readOrNothing(read, path);
          if (seen !== undefined) expect(`${given} ${prefixIn(seen)}`).toBe(`${given} ${match.route.pathPrefix}`);
        }
      }),
      { numRuns: 5000 },
    );
    expect(sent).toBeGreaterThan(500);
  });

  it('the sent path is below the base of the route, and is the received path without the prefix', () => {
    fc.assert(
      fc.property(target, strips, (given, strip) => {
        const match = createRouteTable(routesOf(ALL, strip)).match(given);
        if (match.kind !== 'matched') return;
        const joined = joinTarget(`/base${match.route.pathPrefix}`, given, match.strippedLength);
        if (typeof joined !== 'string') return;
        const base = `/base${match.route.pathPrefix}`.replace(/\/$/, '');
        expect(joined.startsWith(base)).toBe(true);
        expect(joined.slice(base.length)).toMatch(/^(?:$|[/?])/);
        expect(given.endsWith(joined.slice(base.length))).toBe(true);
        const { pathname } = new URL(joined, 'http://a');
        expect(pathname === base || pathname.startsWith(`${base}/`)).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });
});

/** Undefined for a path that the reader refuses. */
