/** How the URL of a token endpoint is split into two settings, and what is proposed for one that was joined twice. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { joinUrl } from '../../../src/config/schema/formats/url.ts';
import { correctTokenUrl, describeTokenUrlSettings, splitTokenUrl } from '../../../src/token/endpoint/token-url.ts';

const segment = fc.constantFrom('oauth', 'oauth2', 'v1', 'token', 'realms', 'a%20b', 'x.y', 'tenant');
const path = fc.array(segment, { minLength: 1, maxLength: 6 }).map((segments) => `/${segments.join('/')}`);
const ORIGIN = 'https://login.example.com:8443';

describe('a token URL that is split', () => {
  test('is the same when it is joined again', () => {
    fc.assert(
      fc.property(path, fc.constantFrom('', '/'), fc.constantFrom('', '?a=b', '?a=b?c&d'), (pathname, slash, query) => {
        const parts = splitTokenUrl(new URL(ORIGIN + pathname + slash + query));
        expect(joinUrl(parts?.authUrl ?? '', parts?.tokenPath ?? '').href).toBe(ORIGIN + pathname + slash + query);
      }),
    );
  });

  test.each(['//a/b', '/a//b', '/a//b/c', '//a//b'])('%s keeps its empty segments', (pathname) => {
    const parts = splitTokenUrl(new URL(ORIGIN + pathname));
    if (parts !== undefined) expect(joinUrl(parts.authUrl, parts.tokenPath).href).toBe(ORIGIN + pathname);
    expect(parts === undefined).toBe(pathname.endsWith('//b'));
  });

  test.each(['', '/', '//'])('%j has no path', (pathname) => {
    expect(splitTokenUrl(new URL(ORIGIN + pathname))).toBeUndefined();
  });
});

describe('the URL that was probably meant', () => {
  test.each([
    ['/oauth/token/oauth/token', '/oauth/token'],
    ['/oauth/oauth/token', '/oauth/token'],
    ['/token/token', '/token'],
    ['/tenant/oauth2/v2.0/token/oauth/token', '/tenant/oauth2/v2.0/token'],
    ['/realms/x/realms/x/token?a=b', '/realms/x/token?a=b'],
    ['/oauth/token', undefined],
    ['/login', undefined],
    ['/', undefined],
  ])('for %s is %s', (given, meant) => {
    expect(correctTokenUrl(new URL(ORIGIN + given))?.href).toBe(meant === undefined ? undefined : ORIGIN + meant);
  });

  test('for any path that is there twice is that path', () => {
    fc.assert(
      fc.property(path, (pathname) => {
        // A path that repeats itself has several halves.
        fc.pre(correctTokenUrl(new URL(ORIGIN + pathname)) === undefined);
        expect(correctTokenUrl(new URL(ORIGIN + pathname + pathname))?.pathname).toBe(pathname);
      }),
    );
  });

  test('is named with both settings, without the values of a query', () => {
    const url = new URL(`${ORIGIN}/oauth2/token?key=sesame`);
    expect(describeTokenUrlSettings(url, (key) => key)).toBe(
      `set auth.url to ${ORIGIN} and auth.tokenPath to /oauth2/token?key=********`,
    );
  });
});
