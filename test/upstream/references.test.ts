/** Where a client that follows a reference ends up: on the sidecar for the upstream's base, elsewhere as it was meant. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClientView } from '../../src/upstream/client-view.ts';
import { rewriteLink, rewriteReference, rewriteRefresh } from '../../src/upstream/references.ts';
import { joinTarget } from '../../src/upstream/request-target.ts';
import { readCpuMs } from '../support/cpu-time.ts';

function viewOf(base: string, requestPath: string, clientPath: ClientView['clientPath'] = (path) => path): ClientView {
  return { baseUrl: new URL(base), requestPath, clientPath, cookieRoot: undefined };
}

const VIEW = viewOf('https://api.example.com/v1', '/v1/orders/7');

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
    ['an empty query, which is kept', '/v1/a?', '/a?'],
    ['the other scheme', 'http://api.example.com/v1/a', '/a'],
    ['the other scheme and its default port', 'http://api.example.com:80/v1/a', '/a'],
    ['the other scheme and the port of the base', 'http://api.example.com:443/v1/a', '/a'],
    // As a client sends what it does not encode itself: one escape for each byte.
    ['bytes above 0x7f', '/v1/caf\u00c3\u00a9?q=\u00e9', '/caf%C3%A9?q=%E9'],
  ])('on the base: %s', (_, reference, rewritten) => {
    expect(rewriteReference(reference, VIEW)).toBe(rewritten);
  });

  it.each([
    ['another host', 'https://login.example.com/start?x', 'https://login.example.com/start?x'],
    ['another host with bytes above 0x7f', 'https://a.example/\u00e9', 'https://a.example/\u00e9'],
    ['another port', 'https://api.example.com:8443/v1/a', 'https://api.example.com:8443/v1/a'],
    ['the other scheme and another port', 'http://api.example.com:8080/v1/a', 'http://api.example.com:8080/v1/a'],
    ['no web address', 'mailto:a@example.com', 'mailto:a@example.com'],
    ['another protocol of the host', 'wss://api.example.com/v1/a', 'wss://api.example.com/v1/a'],
    ['nothing that can be read', 'https://', 'https://'],
    ['a sibling of the base', '/v10/a', 'https://api.example.com/v10/a'],
    ['above the base', '../../a', 'https://api.example.com/a'],
    ['above the base, with the other scheme', 'http://api.example.com/a', 'http://api.example.com/a'],
    // The client would give such a reference the sidecar's own scheme.
    ['a network-path reference', '//login.example.com/a', 'https://login.example.com/a'],
    ['a network-path reference with backslashes', '\\\\login.example.com\\a', 'https://login.example.com/a'],
    // Browsers read it as a relative reference where the scheme is that of the page.
    ['a scheme without slashes', 'http:other.example/a', 'http://other.example/a'],
  ])('elsewhere: %s', (_, reference, rewritten) => {
    expect(rewriteReference(reference, VIEW)).toBe(rewritten);
  });

  it.each([
    ['https://api.example.com:8443', 'http://api.example.com:8443/a', '/a'],
    ['https://api.example.com:8443', 'http://api.example.com/a', 'http://api.example.com/a'],
    ['https://api.example.com:8443', 'https://api.example.com/a', 'https://api.example.com/a'],
    ['http://api.example.com', 'https://api.example.com/a', '/a'],
    ['http://api.example.com', 'https://api.example.com:80/a', '/a'],
    ['http://api.example.com:8080', 'https://api.example.com/a', 'https://api.example.com/a'],
    ['http://[::1]:8080', 'https://[::1]:8080/a', '/a'],
  ])('ports, base %s: %s becomes %s', (base, reference, rewritten) => {
    expect(rewriteReference(reference, viewOf(base, '/x'))).toBe(rewritten);
  });

  it.each(['https://api.example.com', 'https://api.example.com/v1'])(
    'names another host only with a scheme, below %s',
    (base) => {
      const view = viewOf(base, '/v1/a');
      const part = fc.constantFrom(
        ...['/', '\\', 'evil.example', '..', '.', 'v1', ':', '@', '?', '#', ';', '%2f', 'http:', 'https:'],
      );
      fc.assert(
        fc.property(
          fc.array(part, { maxLength: 8 }).map((parts) => parts.join('')),
          (reference) => {
            const rewritten = rewriteReference(reference, view);
            const seen = URL.parse(rewritten, 'http://localhost:18080/x');
            if (seen !== null && seen.host !== 'localhost:18080') expect(rewritten).toMatch(/^[a-z][a-z\d+.-]*:/);
          },
        ),
        { numRuns: 1000 },
      );
    },
  );

  it('gives a path that joins to the address that was meant', () => {
    for (const path of ['/v1/a', '/v1/', '/v1/a/b?x=%2e', '/v1/a%2fb']) {
      const joined = joinTarget('/v1', rewriteReference(`https://api.example.com${path}`, VIEW));
      expect(joined).toBe(path);
    }
  });

  it('never begins with two slashes', () => {
    expect(rewriteReference('/v1//evil.example/a', VIEW)).toBe('/.//evil.example/a');
    expect(rewriteReference('/.//evil.example/a', viewOf('https://api.example.com/', '/x'))).toBe('/.//evil.example/a');
  });
});

describe('a path that the sidecar shows elsewhere', () => {
  const shown = (path: string): string | undefined => (path.startsWith('/hidden') ? undefined : `/quotes${path}`);

  it.each([
    ['/v1/a?x#f', '/quotes/a?x#f'],
    ['/v1', '/quotes'],
    ['/v1/hidden/a', 'https://api.example.com/v1/hidden/a'],
    ['/v2/a', 'https://api.example.com/v2/a'],
  ])('%s becomes %s', (reference, expected) => {
    expect(rewriteReference(reference, viewOf('https://api.example.com/v1', '/v1/orders/7', shown))).toBe(expected);
  });
});

describe('rewriteLink', () => {
  it.each([
    ['one link', '<https://api.example.com/v1/a?page=2>; rel="next"', '</a?page=2>; rel="next"'],
    ['a relative one', '<?page=2>; rel=next', '</orders/7?page=2>; rel=next'],
    [
      'a list, with its spacing and empty members',
      ', </v1/a>;rel=a ,\t,<https://b.example/b> ; rel="b" , </v1/c>',
      ', </a>;rel=a ,\t,<https://b.example/b> ; rel="b" , </c>',
    ],
    [
      'quoted strings with delimiters and escapes',
      '</v1/a>; title="x, </v1/y>; \\"z\\" <"; rel=a, </v1/b>; title*=UTF-8\'\'%3c, <c>',
      '</a>; title="x, </v1/y>; \\"z\\" <"; rel=a, </b>; title*=UTF-8\'\'%3c, </orders/c>',
    ],
    [
      'its context',
      '</v1/a>; anchor="https://api.example.com/v1/b"; rel=x, <#f>; ANCHOR = "#g"',
      '</a>; anchor="/b"; rel=x, </orders/7#f>; ANCHOR = "/orders/7#g"',
    ],
    ['a context that is not quoted', '</v1/a>;anchor=/v1/b ;rel=x', '</a>;anchor="/b" ;rel=x'],
    ['parameters without values', '</v1/a>; anchor; rel; x=; y==z;;, </v1/b>', '</a>; anchor; rel; x=; y==z;;, </b>'],
    [
      'relation types, which are names',
      '</v1/a>; rel="https://api.example.com/v1/r"',
      '</a>; rel="https://api.example.com/v1/r"',
    ],
    ['commas in a target', '</v1/a,b;c>; rel=x, </v1/d>', '</a,b;c>; rel=x, </d>'],
  ])('%s', (_, value, expected) => {
    expect(rewriteLink(value, VIEW)).toBe(expected);
  });

  it.each([
    ['', ''],
    ['/v1/a; rel=next', '/v1/a; rel=next'],
    ['<https://api.example.com/v1/a', '<https://api.example.com/v1/a'],
    ['<https://b.example/>; title="x, </v1/a>', '<https://b.example/>; title="x, </v1/a>'],
    ['<https://b.example/>; title= "x, </v1/a>', '<https://b.example/>; title= "x, </v1/a>'],
    ['<urn:a:b>; rel="x" y, </v1/a>', '<urn:a:b>; rel="x" y, </v1/a>'],
    // A reader of appendix B.2 uses the links before the fault.
    ['</v1/a>; rel=next, what, </v1/b>', '</a>; rel=next, what, </v1/b>'],
  ])('leaves what it cannot parse: %s', (value, expected) => {
    expect(rewriteLink(value, VIEW)).toBe(expected);
  });

  it('changes nothing but targets and contexts', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '<', '>', ',', ';', ' ', '=', '\u00e9', "'"), maxLength: 8 });
    const parameter = fc
      .tuple(fc.constantFrom('rel', 'title', 'TYPE', 'x'), text)
      .map(([name, value]) => `${name}="${value}"`);
    const link = fc.tuple(fc.constantFrom('/v1/a', 'https://b.example/', 'b?c'), fc.array(parameter, { maxLength: 3 }));
    fc.assert(
      fc.property(fc.array(link, { minLength: 1, maxLength: 4 }), (links) => {
        const write = (rewrite: (target: string) => string): string =>
          links.map(([target, parameters]) => [`<${rewrite(target)}>`, ...parameters].join('; ')).join(', ');
        const given = write((target) => target);
        expect(rewriteLink(given, VIEW)).toBe(write((target) => rewriteReference(target, VIEW)));
      }),
    );
  });

  it('reads a long field in linear time', () => {
    const usedMs = readCpuMs();
    for (const part of [' ', ',', ';', '"', '\\', '<', '<>', '<a>;', '<a>;a="', '=', '<a>; '])
      rewriteLink(part.repeat(20_000), VIEW);
    expect(readCpuMs() - usedMs).toBeLessThan(2000);
  });
});

describe('rewriteRefresh', () => {
  it.each([
    ['5; url=https://api.example.com/v1/a', '5; url=/a'],
    ['0;URL=/v1/a?b', '0;URL=/a?b'],
    ['5;\tUrl \t= "/v1/a" rest', '5;\tUrl \t= "/a" rest'],
    ["5, url='/v1/a'", "5, url='/a'"],
    ["5 url='/v1/a", "5 url='/a"],
    ['5; https://api.example.com/v1/a', '5; /a'],
    ['5;"/v1/a"', '5;"/a"'],
    ['1.5; url=b', '1.5; url=/orders/b'],
    ['.5; url=b', '.5; url=/orders/b'],
    ['5; url=https://b.example/c', '5; url=https://b.example/c'],
    // Without its equals sign it is a path of that name.
    ['5; url /v1/a', '5; /orders/url%20/v1/a'],
    ['5; urn:a', '5; urn:a'],
  ])('%s becomes %s', (value, expected) => {
    expect(rewriteRefresh(value, VIEW)).toBe(expected);
  });

  it.each(['', '5', '5;', '5; ', '5; url=', '5; url =', 'url=/v1/a', '5x; url=/v1/a', '-1; url=/v1/a', '/v1/a'])(
    'leaves what browsers do not follow elsewhere: "%s"',
    (value) => {
      expect(rewriteRefresh(value, VIEW)).toBe(value);
    },
  );

  it('does not end the quotes within the URL', () => {
    expect(rewriteRefresh("5; url='?x'", viewOf('https://api.example.com', "/o'b"))).toBe("5; url='/o%27b?x'");
  });

  it('reads a long field in linear time', () => {
    const usedMs = readCpuMs();
    for (const part of [' ', '5', '.', '5;', '5 ', "'"])
      for (const start of ['', '5', '5;', '5;url']) rewriteRefresh(start + part.repeat(20_000), VIEW);
    expect(readCpuMs() - usedMs).toBeLessThan(2000);
  });
});
