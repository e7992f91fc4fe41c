/** Which fields pass in each direction, and that a client can neither keep nor remove what is the sidecar's. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClientView } from '../../src/upstream/client-view.ts';
import { spellings } from '../support/field-spellings.ts';
import { corsHeaders, createRequestHeaderFilter, rewriteResponseHeaders } from '../../src/upstream/headers.ts';

const CONNECTION_SPECIFIC = [
  'Connection',
  'Proxy-Connection',
  'Keep-Alive',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
];
const OWN = ['Content-Length', 'Expect', 'Host', 'Authorization', 'Proxy-Authorization', 'HTTP2-Settings'];
const filterRequestHeaders = createRequestHeaderFilter(['x-key']);
const view = (): ClientView => ({
  baseUrl: new URL('https://api.example.com/v1'),
  requestPath: '/v1/a/b',
  clientPath: (path) => path,
  cookieRoot: '',
});

/** The parser removes blanks and tabs at both ends. */
const BLANK_KEYS = ['', ' \t', '\u00a0', '""', '" "'];

describe('a request', () => {
  it.each([...CONNECTION_SPECIFIC, ...OWN, 'X-Sidecar-Timeout-Ms', 'x-sidecar-anything', 'X-Key'])(
    'loses %s in every case and with underscores',
    (name) => {
      for (const spelling of [name, name.toLowerCase(), name.toUpperCase(), name.replaceAll('-', '_')]) {
        const { headers } = createRequestHeaderFilter(['x-key'])(['A', '1', spelling, 'x', 'B', '2']);
        expect(headers).toEqual(['A', '1', 'B', '2']);
      }
    },
  );

  it('loses a required header whose configured name has an underscore', () => {
    for (const spelling of ['x_key', 'X_Key', 'x-key']) {
      expect(createRequestHeaderFilter(['x_key'])([spelling, 'secret', 'A', '1']).headers).toEqual(['A', '1']);
    }
  });

  it('loses what Connection names, in several fields, with spaces, empty members and underscores', () => {
    const raw = ['Connection', 'X-A, ,x_b', 'x-a', '1', 'X-B', '2', 'connection', '\tX-C ', 'x_c', '3', 'X-D', '4'];
    expect(filterRequestHeaders(raw).headers).toEqual(['X-D', '4']);
  });

  it('cannot have a default taken for its own by naming it in Connection', () => {
    const raw = ['Connection', 'authorization, content-type, idempotency-key, host, content-length'];
    const body = ['Content-Type', 'text/xml', 'Idempotency-Key', 'k', 'Authorization', 'Basic x', 'Accept', '*/*'];
    expect(filterRequestHeaders([...raw, ...body])).toEqual({
      headers: ['Accept', '*/*'],
      hadAuthorization: true,
      hasContentType: false,
      idempotencyKey: undefined,
    });
  });

  it('reports what it had', () => {
    expect(filterRequestHeaders(['content-TYPE', 'a/b', 'IDEMPOTENCY-key', '1'])).toMatchObject({
      hadAuthorization: false,
      hasContentType: true,
      idempotencyKey: '1',
    });
  });

  it('has its first idempotency key that is not blank found in every spelling, and trusted in those that every server reads', () => {
    const names = fc.constantFrom('Idempotency-Key', 'PayPal-Request-Id', 'X-Request-Id');
    const fields = names.chain((keyHeader) =>
      fc.record({
        keyHeader: fc.constant(keyHeader),
        own: fc.array(fc.tuple(spellings(keyHeader), fc.constantFrom(...BLANK_KEYS, 'k', '"k"')), { maxLength: 3 }),
        others: fc.array(fc.tuple(fc.constantFrom('Accept', 'X-Idempotency-Key', 'Idempotency'), fc.constant('o'))),
      }),
    );
    fc.assert(
      fc.property(fields, ({ keyHeader, own, others }) => {
        const raw = [...others, ...own].flat();
        const { idempotencyKey, headers } = filterRequestHeaders(raw, keyHeader);
        const [name, value] = own.find(([, found]) => !BLANK_KEYS.includes(found)) ?? [];
        expect(idempotencyKey).toBe(name?.includes('_') ? '' : value);
        expect(headers).toEqual(raw);
      }),
    );
  });

  it('keeps everything else in order, in its case, with its repetitions', () => {
    const name = fc.constantFrom('Accept', 'x-a', 'X-A', 'Cookie', 'x_under', 'Via', 'X-Forwarded-For', 'Origin');
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.string())), (pairs) => {
        expect(filterRequestHeaders(pairs.flat()).headers).toEqual(pairs.flat());
      }),
    );
  });
});

describe('a response', () => {
  it.each(CONNECTION_SPECIFIC)('loses %s', (name) => {
    expect(rewriteResponseHeaders(['A', '1', name, 'x'], view, undefined)).toEqual(['A', '1']);
    expect(rewriteResponseHeaders([name.toLowerCase(), 'x', 'A', '1'], view, undefined)).toEqual(['A', '1']);
  });

  it('loses what Connection names', () => {
    const raw = ['X-Hop', '1', 'Connection', 'close, x-HOP', 'Content-Length', '3'];
    expect(rewriteResponseHeaders(raw, view, undefined)).toEqual(['Content-Length', '3']);
  });

  it('keeps repeated fields apart, in order and in their case', () => {
    const raw = ['Set-Cookie', 'a=1, x', 'set-cookie', 'b=2', 'WWW-Authenticate', 'Bearer', 'SET-COOKIE', 'c=3'];
    expect(rewriteResponseHeaders(raw, view, undefined)).toEqual(raw);
  });

  it.each(['Location', 'Content-Location'])('has its %s rewritten, in every case', (name) => {
    for (const spelling of [name, name.toLowerCase(), name.toUpperCase()])
      expect(rewriteResponseHeaders(['A', '1', spelling, '/v1/a'], view, undefined)).toEqual([
        'A',
        '1',
        spelling,
        '/a',
      ]);
  });

  it('has each Link, Refresh and Set-Cookie field rewritten by its own syntax', () => {
    const raw = [
      'Link',
      '</v1/a>; rel=next',
      'REFRESH',
      '5; url=/v1/a',
      'link',
      '<b>',
      'Set-Cookie',
      'a=/v1/a; Secure',
    ];
    const expected = ['Link', '</a>; rel=next', 'REFRESH', '5; url=/a', 'link', '</a/b>', 'Set-Cookie', 'a=/v1/a'];
    expect(rewriteResponseHeaders(raw, view, undefined)).toEqual(expected);
  });

  it('keeps every other field byte for byte, and asks for no view of the client', () => {
    const name = fc.constantFrom(
      'X-Location',
      'Locations',
      'Set-Cookie2',
      'Links',
      'Alt-Svc',
      'Content-Type',
      'Origin',
    );
    const value = fc.constantFrom('https://api.example.com/v1/a', '/v1/a', '</v1/a>', '5; url=/v1/a', 'a=1; Secure');
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value)), (pairs) => {
        const unused = (): never => expect.fail('asked for a view');
        expect(rewriteResponseHeaders(pairs.flat(), unused, undefined)).toEqual(pairs.flat());
      }),
    );
  });

  it('for an allowed page carries the sidecar’s CORS fields in place of the upstream’s', () => {
    const raw = ['Access-Control-Allow-Origin', '*', 'access-control-allow-credentials', 'true', 'Vary', 'Accept'];
    const origin = 'http://localhost:3000';
    expect(rewriteResponseHeaders(raw, view, origin)).toEqual(['Vary', 'Accept', ...corsHeaders(origin)]);
    expect(rewriteResponseHeaders(raw, view, undefined)).toEqual(raw);
  });
});
