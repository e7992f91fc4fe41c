/** What a client on plain HTTP, under the sidecar's host and paths, needs to keep the upstream's cookies, and that all else keeps its bytes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClientView } from '../../src/upstream/client-view.ts';
import { adaptCookie } from '../../src/upstream/cookies.ts';

const VIEW: ClientView = {
  baseUrl: new URL('https://api.partner.example/sales/v1'),
  requestPath: '/sales/v1/login',
  clientPath: (path) => path,
  cookieRoot: '',
};
const STRIPPED: ClientView = { ...VIEW, clientPath: (path) => `/quotes${path}` };
const UNSTRIPPED: ClientView = { ...VIEW, requestPath: '/sales/v1/quotes/login', cookieRoot: '/quotes' };

function onHost(host: string): ClientView {
  return { ...VIEW, baseUrl: new URL(`https://${host}/sales/v1`) };
}

describe('a cookie', () => {
  it.each([
    ['sid=1; Secure; HttpOnly; Domain=partner.example; SameSite=None; Path=/sales/v1', 'sid=1; HttpOnly; Path=/'],
    ['sid=1;secure;HTTPONLY', 'sid=1;HTTPONLY'],
    ['sid=1 ; SECURE = yes ; sameSite =\tnone\t; HttpOnly', 'sid=1 ; HttpOnly'],
    ['sid=1; SameSite=Lax; Secure', 'sid=1; SameSite=Lax'],
    ['sid=1; Secure; Partitioned; Priority=High', 'sid=1; Partitioned; Priority=High'],
    [
      'sid=1; Expires=Wed, 21 Oct 2037 07:28:00 GMT; Max-Age=60; Secure',
      'sid=1; Expires=Wed, 21 Oct 2037 07:28:00 GMT; Max-Age=60',
    ],
    ['__Host-sid=1; Path=/; Secure', '__Host-sid=1; Path=/'],
    ['__Secure-sid=1; Secure', '__Secure-sid=1'],
    ['sid="a=b, c"; Secure', 'sid="a=b, c"'],
    ['secure=Secure; Secure', 'secure=Secure'],
    ['Secure', 'Secure'],
    ['domain=other.example', 'domain=other.example'],
    ['sid=\u00e9\u00ff\u00a0; Secure; X\u00a0=\u00a0', 'sid=\u00e9\u00ff\u00a0; X\u00a0=\u00a0'],
    ['', ''],
    [';;', ';;'],
  ])('%j becomes %j', (cookie, adapted) => {
    expect(adaptCookie(cookie, VIEW)).toBe(adapted);
  });

  it('is not changed where cookies pass', () => {
    const cookie = 'sid=1; Secure; Domain=partner.example; Path=/sales/v1';
    expect(adaptCookie(cookie, { ...STRIPPED, cookieRoot: undefined })).toBe(cookie);
  });

  it('keeps name, value and all other attributes, in order and byte for byte', () => {
    const byte = fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code));
    const text = fc.string({ unit: byte, maxLength: 12 }).map((value) => value.replaceAll(';', ''));
    const other = text.filter((value) => !/^[ \t]*(?:secure|samesite|domain|path)[ \t]*(?:=|$)/i.test(value));
    const removed = fc.constantFrom(
      ' Secure',
      'secure=x',
      ' SameSite=None',
      ' Domain=.Partner.EXAMPLE ',
      '\tDOMAIN = api.partner.example',
    );
    const attribute = fc.oneof(
      other.map((value) => ({ value, isKept: true })),
      removed.map((value) => ({ value, isKept: false })),
    );
    fc.assert(
      fc.property(text, fc.array(attribute), (pair, attributes) => {
        const given = [pair, ...attributes.map(({ value }) => value)].join(';');
        const kept = [pair, ...attributes.filter(({ isKept }) => isKept).map(({ value }) => value)].join(';');
        expect(adaptCookie(given, VIEW)).toBe(kept);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('Domain', () => {
  it.each([
    ['api.partner.example', 'api.partner.example'],
    ['api.partner.example', 'API.Partner.Example'],
    ['api.partner.example', '.partner.example'],
    ['api.partner.example', 'example'],
    ['127.0.0.1', '127.0.0.1'],
    ['127.0.0.1', '.127.0.0.1'],
    ['[::1]', '::1'],
    ['[::1]', '[::1]'],
    ['localhost', 'localhost'],
  ])('of the host %s is removed: %s', (host, domain) => {
    expect(adaptCookie(`a=1; Domain=${domain}; Secure; HttpOnly`, onHost(host))).toBe('a=1; HttpOnly');
  });

  it.each([
    ['api.partner.example', 'ner.example'],
    ['api.partner.example', 'other.example'],
    ['api.partner.example', 'a.api.partner.example'],
    ['api.partner.example', '..partner.example'],
    ['api.partner.example', '"partner.example"'],
    ['127.0.0.1', '0.0.1'],
    ['127.0.0.1', '1'],
    ['[::1]', '1]'],
    ['localhost', '127.0.0.1'],
  ])('that a client of %s refuses leaves the cookie as it is: %s', (host, domain) => {
    const cookie = `a=1; Secure; Domain=${domain}; SameSite=None; Path=/sales/v1/x`;
    expect(adaptCookie(cookie, onHost(host))).toBe(cookie);
  });

  it('counts by its last value, and is ignored when empty', () => {
    const refused = 'a=1; Secure; Domain=partner.example; domain=other.example';
    expect(adaptCookie(refused, VIEW)).toBe(refused);
    expect(adaptCookie('a=1; Domain=other.example; Secure; Domain=partner.example', VIEW)).toBe('a=1');
    expect(adaptCookie('a=1; Domain=partner.example; Domain=; Secure', VIEW)).toBe('a=1; Domain=');
    expect(adaptCookie('a=1; Domain=.; Secure', VIEW)).toBe('a=1');
  });
});

describe('Path', () => {
  it.each([
    ['/sales/v1', '/', '/quotes', '/quotes'],
    ['/sales/v1/', '/', '/quotes/', '/quotes'],
    ['/sales/v1/quotes/a', '/quotes/a', '/quotes/quotes/a', '/quotes/a'],
    ['/sales/v1/quotes/', '/quotes/', '/quotes/quotes/', '/quotes/'],
    ['/', '/', '/quotes', '/quotes'],
    ['/sales', '/', '/quotes', '/quotes'],
    ['/sales/', '/', '/quotes', '/quotes'],
    ['/other', '/other', '/quotes', '/quotes'],
    ['/sales/v10', '/sales/v10', '/quotes', '/quotes'],
    ['/sales/v1/quotesx', '/quotesx', '/quotes/quotesx', '/quotes'],
    ['/sales/v1/policies', '/policies', '/quotes/policies', '/quotes'],
  ])('%s becomes %s; in a route with a stripped prefix %s, with a prefix %s', (path, plain, stripped, unstripped) => {
    for (const [view, expected] of [
      [VIEW, plain],
      [STRIPPED, stripped],
      [UNSTRIPPED, unstripped],
    ] as const)
      expect(adaptCookie(`a=1;\tPATH = ${path} ; HttpOnly`, view)).toBe(`a=1;\tPATH = ${expected} ; HttpOnly`);
  });

  it('keeps the base where the client does so', () => {
    const absolute: ClientView = { ...VIEW, clientPath: (path) => `/sales/v1${path}` };
    expect(adaptCookie('a=1; Path=/sales/v1/x; Secure', absolute)).toBe('a=1; Path=/sales/v1/x');
    expect(adaptCookie('a=1; Path=/sales/v1; Secure', absolute)).toBe('a=1; Path=/sales/v1');
  });

  it('is not changed where the client has no such path', () => {
    const hidden: ClientView = { ...VIEW, clientPath: (path) => (path.startsWith('/x') ? undefined : path) };
    expect(adaptCookie('a=1; Path=/sales/v1/x', hidden)).toBe('a=1; Path=/sales/v1/x');
  });

  it.each(['a=1', 'a=1; Path', 'a=1; Path=', 'a=1; Path=x', 'a=1; Path="/sales/v1"', 'a=1; Path=/sales/v1/x; Path='])(
    'is added where there is none: %s',
    (cookie) => {
      const adapted = cookie.replace('=/sales/v1/x', '=/quotes/x');
      for (const requestPath of ['/sales/v1', '/sales/v1?x=/y', '/sales/v1/', '/sales/v1/login', '/sales/v1/a/login'])
        expect(adaptCookie(cookie, { ...STRIPPED, requestPath })).toBe(`${adapted}; Path=/quotes`);
    },
  );

  it('is not added to a route of all paths', () => {
    for (const requestPath of ['/sales/v1', '/sales/v1/', '/sales/v1/a/b?c'])
      expect(adaptCookie('a=1; Secure', { ...VIEW, requestPath })).toBe('a=1');
  });
});
