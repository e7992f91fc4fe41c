/** Authorization server metadata: its location, and which documents are accepted. */
import { describe, expect, test } from 'vitest';
import {
  describeUnsupportedAuth,
  listMetadataUrls,
  parseServerMetadata,
} from '../../../src/token/endpoint/server-metadata.ts';

const ISSUER = 'https://login.test/tenant';

function read(fields: Readonly<Record<string, unknown>>, issuer = ISSUER, allowInsecureHttp = false) {
  const document = { issuer, token_endpoint: 'https://login.test/token', ...fields };
  return parseServerMetadata(JSON.stringify(document), issuer, allowInsecureHttp);
}

describe('the metadata URLs', () => {
  test.each([
    ['https://a.test', '/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'],
    ['https://a.test/', '/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'],
    ['https://a.test/t/1', '/.well-known/oauth-authorization-server/t/1', '/t/1/.well-known/openid-configuration'],
    ['https://a.test/t/', '/.well-known/oauth-authorization-server/t', '/t/.well-known/openid-configuration'],
  ])('of %s', (issuer, oauth, openid) => {
    expect(listMetadataUrls(issuer).map(({ href }) => href)).toEqual([
      `https://a.test${oauth}`,
      `https://a.test${openid}`,
    ]);
  });
});

describe('a document is accepted', () => {
  test('when it names the issuer and an https: endpoint on any host', () => {
    expect(read({ token_endpoint: 'https://other.test:8443/t?x=1', more: {} })).toEqual({
      kind: 'read',
      metadata: {
        tokenUrl: new URL('https://other.test:8443/t?x=1'),
        mtlsTokenUrl: undefined,
        methods: undefined,
        signingAlgorithms: undefined,
        requiresDpop: false,
      },
    });
  });

  test('with an endpoint for clients with a certificate, methods and algorithms', () => {
    const reading = read({
      mtls_endpoint_aliases: { token_endpoint: 'https://mtls.test/t' },
      token_endpoint_auth_methods_supported: ['private_key_jwt', 1],
      token_endpoint_auth_signing_alg_values_supported: ['ES256'],
    });
    expect(reading).toMatchObject({
      metadata: {
        mtlsTokenUrl: new URL('https://mtls.test/t'),
        methods: ['private_key_jwt'],
        signingAlgorithms: ['ES256'],
      },
    });
  });

  test('with http: for loopback, or if that is allowed', () => {
    expect(read({ token_endpoint: 'http://127.0.0.1:1/t' }).kind).toBe('read');
    expect(read({ token_endpoint: 'http://login.test/t' }).kind).toBe('unusable');
    expect(read({ token_endpoint: 'http://login.test/t' }, ISSUER, true).kind).toBe('read');
  });
});

describe('a document is refused, with a fault that can be shown', () => {
  test.each<[string, Readonly<Record<string, unknown>>, string]>([
    ['another issuer', { issuer: 'https://evil.test' }, 'names "https://evil.test" as the issuer: set auth.issuer'],
    ['the issuer with a slash more', { issuer: `${ISSUER}/` }, `names "${ISSUER}/" as the issuer`],
    ['the issuer in other letters', { issuer: ISSUER.replace('login', 'LOGIN') }, 'as the issuer'],
    ['no issuer', { issuer: undefined }, 'names nothing as the issuer'],
    ['an issuer of another kind', { issuer: [ISSUER] }, 'names nothing as the issuer'],
    ['no endpoint', { token_endpoint: undefined }, 'names no usable token_endpoint: it is not there'],
    ['a relative endpoint', { token_endpoint: '/token' }, '"/token" is no absolute https: URL'],
    ['another scheme', { token_endpoint: 'ftp://a.test/' }, 'is no absolute https: URL'],
    ['a fragment', { token_endpoint: 'https://a.test/#x' }, 'user information or a fragment'],
    ['user information', { token_endpoint: 'https://u:sesame@a.test/' }, 'user information or a fragment'],
    [
      'a bad endpoint for certificates',
      { mtls_endpoint_aliases: { token_endpoint: 'http://a.test/' } },
      'for clients with a certificate: a.test is to be reached by http:',
    ],
  ])('%s', (_, fields, fault) => {
    const reading = read(fields);
    expect(reading).toMatchObject({ kind: 'unusable', fault: expect.stringContaining(fault) as unknown });
    expect(JSON.stringify(reading)).not.toContain('sesame');
  });

  test.each(['', '<html>', '[]', 'null', '"x"'])('%j', (body) => {
    expect(parseServerMetadata(body, ISSUER, false)).toEqual({ kind: 'unusable', fault: 'is not a JSON object' });
  });

  test('text of the server is limited to one line of printable ASCII', () => {
    const reading = read({ issuer: `\u001b[31mevil\n${'x'.repeat(1000)}\u2028` });
    expect(reading.kind === 'unusable' ? reading.fault : '').toMatch(
      /^names "\\u001b\[31mevil\\n[x]+\.{3}" as the issuer/,
    );
    expect(reading.kind === 'unusable' ? reading.fault.length : 0).toBeLessThan(300);
  });
});

test('an assertion in a file is listed as private_key_jwt or client_secret_jwt', () => {
  for (const name of ['private_key_jwt', 'client_secret_jwt']) {
    const metadata = { tokenUrl: new URL('https://login.test/token'), mtlsTokenUrl: undefined, methods: [name] };
    const used = { method: 'client_assertion', algorithm: undefined };
    const stated = { ...metadata, signingAlgorithms: ['PS256'], requiresDpop: false };
    expect(describeUnsupportedAuth(stated, used)).toBeUndefined();
  }
});

describe('a mismatch', () => {
  const metadata = {
    tokenUrl: new URL('https://login.test/token'),
    mtlsTokenUrl: undefined,
    methods: ['client_secret_post', 'self_signed_tls_client_auth'],
    signingAlgorithms: ['PS256'],
    requiresDpop: false,
  };
  test.each([
    [
      'client_secret_basic',
      undefined,
      'auth.method is client_secret_basic, and the authorization server lists client_secret_post, self_signed_tls_client_auth',
    ],
    ['client_secret_post', undefined, undefined],
    ['tls_client_auth', undefined, undefined],
    ['none', undefined, undefined],
    [
      'client_assertion',
      undefined,
      'auth.method is client_assertion, and the authorization server lists client_secret_post, self_signed_tls_client_auth',
    ],
  ])('of %s', (method, algorithm, expected) => {
    expect(describeUnsupportedAuth(metadata, { method, algorithm })).toBe(expected);
  });
  test('of the algorithm', () => {
    const used = { method: 'private_key_jwt', algorithm: 'ES256' };
    const any = { ...metadata, methods: undefined };
    expect(describeUnsupportedAuth(any, used)).toBe(
      'the assertion is signed with ES256, and the authorization server lists PS256',
    );
    expect(describeUnsupportedAuth({ ...any, signingAlgorithms: undefined }, used)).toBeUndefined();
  });

  test.each([
    [{ dpop_required: true }, true],
    [{ require_dpop: true }, true],
    [{ require_dpop: false }, false],
    [{ dpop_signing_alg_values_supported: ['ES256'] }, false],
  ])('of DPoP, if the server requires it: %j', (more, isRequired) => {
    const reading = read(more);
    if (reading.kind === 'unusable') throw new Error(reading.fault);
    const mismatch = describeUnsupportedAuth(reading.metadata, { method: 'client_secret_basic', algorithm: undefined });
    expect(mismatch?.includes('requires DPoP (RFC 9449), which is not supported') ?? false).toBe(isRequired);
  });
});
