/** Where a client that follows a redirect ends up: on the sidecar for the upstream's base, elsewhere as it was meant. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rewriteReference } from '../../src/upstream/references.ts';
import { joinTarget } from '../../src/upstream/request-target.ts';

const BASE = new URL('https://api.example.com/v1');

describe('rewriteReference', () => {
  it.each([
    ['an absolute URL', 'https://api.example.com/v1/a?x=1#f', '/a?x=1#f'],
    ['its default port spelled out', 'https://api.example.com:443/v1/a', '/a'],
    ['any case of scheme and host', 'HTTPS://API.Example.COM/v1/a', '/a'],
    ['a network-path reference', '//api.example.com/v1/a', '/a'],
    ['a path', '/v1/a', '/a'],
    ['a path beside the one that was asked', 'c?y=2', '/orders/c?y=2'],
    ['a path that climbs', '../a', '/a'],
    ['a query alone', '?page=2', '/orders/7?page=2'],
    ['nothing', '', '/orders/7'],
    ['the base itself', 'https://api.example.com/v1', '/'],
    ['the base and a slash', '/v1/', '/'],
    ['a user name, which is dropped', 'https://me:pw@api.example.com/v1/a', '/a'],
  ])('on the base: %s', (_, location, rewritten) => {
    expect(rewriteReference(BASE, '/v1/orders/7', location)).toBe(rewritten);
  });

  it.each([
    ['another host', 'https://login.example.com/start?x', 'https://login.example.com/start?x'],
    ['another scheme', 'http://api.example.com/v1/a', 'http://api.example.com/v1/a'],
    ['another port', 'https://api.example.com:8443/v1/a', 'https://api.example.com:8443/v1/a'],
    ['no web address', 'mailto:a@example.com', 'mailto:a@example.com'],
    ['nothing that can be read', 'https://', 'https://'],
    ['a sibling of the base', '/v10/a', 'https://api.example.com/v10/a'],
    ['above the base', '../../a', 'https://api.example.com/a'],
    // The client would give such a reference the sidecar's own scheme.
    ['a network-path reference', '//login.example.com/a', 'https://login.example.com/a'],
    ['a network-path reference with backslashes', '\\\\login.example.com\\a', 'https://login.example.com/a'],
  ])('elsewhere: %s', (_, location, rewritten) => {
    expect(rewriteReference(BASE, '/v1/orders/7', location)).toBe(rewritten);
  });

  it.each([new URL('https://api.example.com'), BASE])('names another host only with a scheme, below %s', (base) => {
    const part = fc.constantFrom('/', '\\', 'evil.example', '..', '.', 'v1', ':', '@', '?', '#', ';', '%2f');
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 8 }).map((parts) => parts.join('')),
        (location) => {
          const rewritten = rewriteReference(base, '/v1/a', location);
          const seen = URL.parse(rewritten, 'http://localhost:18080/x');
          if (seen !== null && seen.host !== 'localhost:18080') expect(rewritten).toMatch(/^[a-z][a-z\d+.-]*:/);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('gives a path that joins to the address that was meant', () => {
    for (const path of ['/v1/a', '/v1/', '/v1/a/b?x=%2e', '/v1/a%2fb']) {
      const joined = joinTarget(BASE.pathname, rewriteReference(BASE, '/v1/x', BASE.origin + path));
      expect(joined).toEqual({ kind: 'joined', path });
    }
  });

  it('never begins with two slashes', () => {
    expect(rewriteReference(BASE, '/v1/x', '/v1//evil.example/a')).toBe('/.//evil.example/a');
    expect(rewriteReference(new URL('https://api.example.com/'), '/x', '/.//evil.example/a')).toBe(
      '/.//evil.example/a',
    );
  });
});

describe('a path that the sidecar shows elsewhere', () => {
  const shown = (path: string): string | undefined => (path.startsWith('/hidden') ? undefined : `/quotes${path}`);

  it.each([
    ['/v1/a?x#f', '/quotes/a?x#f'],
    ['/v1', '/quotes'],
    ['/v1/hidden/a', 'https://api.example.com/v1/hidden/a'],
    ['/v2/a', 'https://api.example.com/v2/a'],
  ])('%s becomes %s', (location, expected) => {
    expect(rewriteReference(BASE, '/v1/orders/7', location, shown)).toBe(expected);
  });
});
