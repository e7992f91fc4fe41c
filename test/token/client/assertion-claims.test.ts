/** Which assertions are sent: a signed JWT with one audience, the configured one, that is not its issuer, and only while it is valid. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeAssertion, findAssertionFault, parseAssertion } from '../../../src/token/client/assertion-claims.ts';
import { anyCodePoint } from '../../support/code-points.ts';

const NOW = Date.UTC(2026, 10, 1);
const NOW_S = NOW / 1000;
const AUDIENCE = 'api://AzureADTokenExchange';
const CLAIMS = { iss: 'https://oidc.cluster.example', sub: 'a', aud: AUDIENCE, exp: NOW_S + 60, nbf: NOW_S };

const encode = (part: unknown): string => Buffer.from(JSON.stringify(part)).toString('base64url');
const jwt = (claims: unknown, header: unknown = { alg: 'RS256' }, signature = 'c2ln'): string =>
  `${encode(header)}.${encode(claims)}.${signature}`;

/** The fault of an assertion with these claims in place of good ones. */
function faultOf(claims: Readonly<Record<string, unknown>>, expected = AUDIENCE): string | undefined {
  return faultOfText(jwt({ ...CLAIMS, ...claims }), expected);
}

function faultOfText(text: string, expected = AUDIENCE): string | undefined {
  const parsed = parseAssertion(text);
  return typeof parsed === 'string' ? parsed : findAssertionFault(parsed, expected, NOW);
}

describe('a good assertion', () => {
  it('has one audience, as a text or as a list', () => {
    expect(faultOf({})).toBeUndefined();
    expect(faultOf({ aud: [AUDIENCE] })).toBeUndefined();
    expect(faultOf({ nbf: undefined, sub: undefined, exp: NOW_S + 0.5 })).toBeUndefined();
  });

  it('may be from an issuer whose clock is 5 s ahead, and not one that is further ahead', () => {
    expect(faultOf({ nbf: NOW_S + 5 })).toBeUndefined();
    expect(faultOf({ nbf: NOW_S + 6 })).toMatch(/^holds a JWT that is valid from 2026-11-01T00:00:06Z only; expected/);
  });
});

describe('refused', () => {
  it.each<[string, Readonly<Record<string, unknown>>, RegExp]>([
    ['expired just now', { exp: NOW_S }, /expired at 2026-11-01T00:00:00Z; expected one that its issuer renews/],
    ['expired long ago', { exp: 0 }, /expired at 1970-01-01T00:00:00Z/],
    ['without an expiry', { exp: undefined }, /without an expiry; expected the claim "exp"/],
    ['with an expiry in a text', { exp: '9999999999' }, /without an expiry/],
    ['with an expiry past all dates', { exp: 1e300 }, /without an expiry/],
    ['with a start in a text', { nbf: 'now' }, /invalid "nbf"/],
    ['without an issuer', { iss: undefined }, /without an issuer/],
    ['with an empty issuer', { iss: '' }, /without an issuer/],
    ['without an audience', { aud: undefined }, /no audience; expected auth\.assertionFileAudience, "api:.*", alone$/],
    ['with no audience in its list', { aud: [] }, /no audience/],
    ['for two audiences', { aud: [AUDIENCE, 'b'] }, /the audiences ".*", "b"; expected .*, alone$/],
    ['for the same audience twice', { aud: [AUDIENCE, AUDIENCE] }, /the audiences/],
    ['with a number as audience', { aud: 5 }, /invalid "aud"/],
    ['with a number in its list', { aud: [AUDIENCE, 5] }, /invalid "aud"/],
    ['with a null as audience', { aud: null }, /invalid "aud"/],
    ['for another audience', { aud: 'b' }, /for the audience "b"; expected auth\.assertionFileAudience, "api:/],
    ['for its own issuer', { aud: [CLAIMS.iss] }, /audience is its own issuer, ".*".*must not leave the cluster/],
    ['for its own issuer too', { aud: [AUDIENCE, CLAIMS.iss] }, /audience is its own issuer/],
  ])('%s', (_, claims, fault) => {
    expect(faultOf(claims)).toMatch(fault);
  });

  it('for its own issuer, although that is the expected audience', () => {
    expect(faultOf({ aud: CLAIMS.iss }, CLAIMS.iss)).toMatch(/audience is its own issuer/);
  });

  it('a number as audience, although the expected one has the same digits', () => {
    expect(faultOf({ aud: 5 }, '5')).toMatch(/invalid "aud"/);
  });

  it.each([
    ['a secret', 'sesame'],
    ['two parts', 'e30.e30'],
    ['an encrypted JWT', 'e30.e30.e30.e30.e30'],
    ['blanks around it', ` ${jwt(CLAIMS)}`],
    ['base64 that is not base64url', jwt(CLAIMS, undefined, 'a+/=')],
    ['a payload that is no object', jwt([CLAIMS])],
    ['a payload that is not JSON', `${encode({ alg: 'RS256' })}.c2VzYW1l.c2ln`],
    ['a payload that is not UTF-8', `${encode({ alg: 'RS256' })}._w.c2ln`],
    ['no signature', jwt(CLAIMS, undefined, '')],
    ['alg none', jwt(CLAIMS, { alg: 'none' })],
    ['alg NONE', jwt(CLAIMS, { alg: 'NONE' })],
    ['no alg', jwt(CLAIMS, {})],
  ])('%s', (_, text) => {
    expect(faultOfText(text)).toMatch(/^holds (?:a|no) (?:signed )?JWT.*; expected /);
    expect(faultOfText(text)).not.toContain('sesame');
  });

  it('every text that is no JWT, without a throw and without quoting it', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCodePoint, minLength: 12 }), (text) => {
        const fault = faultOfText(text) ?? '';
        expect(fault).toMatch(/^holds /);
        expect(fault).not.toContain(text);
      }),
    );
  });

  it('every audience but the expected one, character by character', () => {
    const audience = fc.oneof(fc.string(), fc.constantFrom(`${AUDIENCE}/`, AUDIENCE.toLowerCase(), ` ${AUDIENCE}`));
    fc.assert(
      fc.property(
        fc.oneof(audience, fc.array(audience, { maxLength: 3 })),
        fc.string({ minLength: 1 }),
        (aud, expected) => {
          const list = Array.isArray(aud) ? aud : [aud];
          const isGood = list.length === 1 && list[0] === expected && expected !== CLAIMS.iss;
          expect(faultOf({ aud }, expected) === undefined).toBe(isGood);
        },
      ),
    );
  });
});

it('what is shown of it is on one line, short and printable', () => {
  const text = fc.oneof(fc.string({ unit: anyCodePoint, minLength: 1 }), fc.constant('\u001b[2J\n'.repeat(5_000)));
  fc.assert(
    fc.property(text, text, fc.array(text, { maxLength: 20 }), (iss, sub, aud) => {
      const parsed = parseAssertion(jwt({ ...CLAIMS, iss, sub, aud }));
      if (typeof parsed === 'string') throw new Error(parsed);
      for (const shown of [describeAssertion(parsed), findAssertionFault(parsed, AUDIENCE, NOW) ?? '']) {
        expect(shown).toMatch(/^[\x20-\x7e]*$/);
        expect(shown.length).toBeLessThan(7_000);
      }
    }),
  );
  expect(describeAssertion({ ...parsedClaims(), audiences: [AUDIENCE] })).toBe(
    'issuer "https://oidc.cluster.example", subject "a", audience "api://AzureADTokenExchange", valid until 2026-11-01T00:01:00Z',
  );
});

function parsedClaims() {
  const parsed = parseAssertion(jwt(CLAIMS));
  if (typeof parsed === 'string') throw new Error(parsed);
  return parsed;
}
