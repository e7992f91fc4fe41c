/** Who gets past the guard, as tables: Host, target forms, framing, Origin, Sec-Fetch-Site, the required header. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { guardRequest } from '../../src/listener/guard.ts';
import type { GuardOptions, GuardedHead } from '../../src/listener/guard.ts';

const ORIGIN = 'http://localhost:3000';
const OPTIONS: GuardOptions = {
  allowedHosts: [
    { host: 'localhost', port: undefined },
    { host: '127.0.0.1', port: undefined },
    { host: '[::1]', port: undefined },
    { host: 'sidecar.test', port: 18080 },
    { host: 'plain.test', port: 80 },
  ],
  allowedOrigins: [ORIGIN],
  requiredHeader: undefined,
};
const HOST = ['Host', 'localhost'];
const ON_SOCKET_FILE: GuardOptions = { ...OPTIONS, allowedHosts: undefined };
const FOREIGN_HOSTS = [
  'evil.example',
  'localhost.evil.example',
  'evil-localhost',
  'localhost.',
  '127.1',
  '127.0.0.2',
  '2130706433',
  '[::2]',
  '[0:0:0:0:0:0:0:1]',
  '[v1.localhost]',
  '%6cocalhost',
  'localhost%00.evil.example',
  'sidecar.test',
  'sidecar.test:80',
  'sidecar.test:18081',
  'plain.test:81',
];
const INVALID_HOSTS = [
  '',
  ' ',
  ':80',
  ':',
  'localhost:x',
  'localhost:-1',
  'localhost:80:80',
  'localhost:65536',
  'localhost:99999',
  'localhost:123456',
  'localhost@evil.example',
  'user@localhost',
  'evil.example:80@localhost',
  'localhost/evil',
  'localhost\\evil.example',
  'localhost#evil',
  'localhost?evil',
  'localhost, evil.example',
  'localhost,evil.example',
  'localhost evil.example',
  'http://localhost',
  '"localhost"',
  'localhost%',
  'localhost%0',
  '::1',
  '[::1',
  '::1]',
  '[]',
  '[localhost]',
  '[127.0.0.1]',
  '[::1]x',
  '[:::1]',
  '[::1%25lo]',
  '[::1%lo]',
];
const WITH_SECRET = { ...OPTIONS, requiredHeader: { name: 'x-key', value: 'open sesame' } };

/** `pass`, or the code of the refusal. */
function judge(head: Partial<GuardedHead>, options: GuardOptions = OPTIONS): string {
  const whole = { method: 'GET', target: '/', httpVersion: '1.1', rawHeaders: HOST, ...head };
  const verdict = guardRequest(options, whole);
  return verdict.kind === 'pass' ? 'pass' : verdict.error.code;
}

describe('Host', () => {
  it.each([
    'localhost',
    'LocalHost',
    'localhost:',
    'localhost:1',
    'localhost:65535',
    '127.0.0.1:18080',
    '[::1]',
    '[::1]:18080',
    'sidecar.test:18080',
    'SIDECAR.TEST:18080',
    'plain.test',
    'plain.test:80',
  ])('%s passes', (host) => {
    expect(judge({ rawHeaders: ['Host', host] })).toBe('pass');
  });

  it.each(FOREIGN_HOSTS)('%s is not allowed', (host) => {
    expect(judge({ rawHeaders: ['Host', host] })).toBe('HOST_NOT_ALLOWED');
  });

  it.each(INVALID_HOSTS)('"%s" is invalid, wherever it listens', (host) => {
    for (const options of [OPTIONS, ON_SOCKET_FILE])
      for (const httpVersion of ['1.0', '1.1'])
        for (const target of ['/', 'http://localhost/'])
          expect(judge({ rawHeaders: ['Host', host], httpVersion, target }, options)).toBe('BAD_REQUEST');
  });

  it('with anything that a host cannot hold is invalid, at any place', () => {
    const strangers = fc.constantFrom(...Array.from(' \t,@/\\?#"<>^`{}|[]\u0000\u007f\u00e4\u20ac'));
    const names = fc.constantFrom('localhost', 'evil.example', '127.0.0.1');
    fc.assert(
      fc.property(
        names,
        strangers,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom('', ':80'),
        (...parts) => {
          const [name, stranger, share, port] = parts;
          const at = Math.round(share * name.length);
          const host = name.slice(0, at) + stranger + name.slice(at) + port;
          for (const options of [OPTIONS, ON_SOCKET_FILE])
            expect(judge({ rawHeaders: ['Host', host] }, options)).toBe('BAD_REQUEST');
        },
      ),
    );
  });

  it('with any port of 65535 at most is valid, with any other is not', () => {
    fc.assert(
      fc.property(fc.nat({ max: 200_000 }), (port) => {
        const code = port > 65_535 ? 'BAD_REQUEST' : 'pass';
        expect(judge({ rawHeaders: ['Host', `localhost:${String(port)}`] })).toBe(code);
      }),
    );
  });

  it('must be there exactly once, in every spelling; HTTP/1.0 may have none', () => {
    expect(judge({ rawHeaders: [] })).toBe('BAD_REQUEST');
    expect(judge({ rawHeaders: [], target: 'http://localhost/' })).toBe('BAD_REQUEST');
    expect(judge({ rawHeaders: [], httpVersion: '1.0' })).toBe('pass');
    for (const httpVersion of ['1.0', '1.1']) {
      const twice = ['Host', 'localhost', 'hOST', 'localhost'];
      expect(judge({ rawHeaders: twice, httpVersion })).toBe('BAD_REQUEST');
      expect(judge({ rawHeaders: ['Host', 'localhost', 'Host', 'evil'], httpVersion })).toBe('BAD_REQUEST');
    }
  });

  it('may be any on a socket file, or absent, and never two', () => {
    for (const target of ['/', 'http://anything/']) {
      expect(judge({ target, rawHeaders: ['Host', 'anything'] }, ON_SOCKET_FILE)).toBe('pass');
      expect(judge({ target, rawHeaders: [] }, ON_SOCKET_FILE)).toBe('pass');
      expect(judge({ target, rawHeaders: ['Host', 'a', 'Host', 'a'] }, ON_SOCKET_FILE)).toBe('BAD_REQUEST');
    }
  });

  it('that passed once does not let another pass', () => {
    const options = { ...OPTIONS };
    expect(judge({}, options)).toBe('pass');
    expect(judge({ rawHeaders: ['Host', 'evil.example'] }, options)).toBe('HOST_NOT_ALLOWED');
    expect(judge({ rawHeaders: [...HOST, ...HOST] }, options)).toBe('BAD_REQUEST');
  });
});

describe('the target', () => {
  it.each([
    ['/a?b', '/a?b'],
    ['//evil.example/a', '//evil.example/a'],
    ['http://localhost/a?b', '/a?b'],
    ['HTTPS://LOCALHOST:1/a', '/a'],
    ['http://[::1]:18080/a', '/a'],
    ['http://localhost', '/'],
    ['http://localhost?x=1', '/?x=1'],
    ['http://localhost//evil.example', '//evil.example'],
  ])('%s becomes %s', (target, originForm) => {
    const verdict = guardRequest(OPTIONS, { method: 'GET', target, httpVersion: '1.1', rawHeaders: HOST });
    expect(verdict).toMatchObject({ kind: 'pass', target: originForm });
  });

  it.each([
    ['http://evil.example/', 'HOST_NOT_ALLOWED'],
    ['http://localhost@evil.example/', 'BAD_REQUEST'],
    ['http://evil.example@localhost/', 'BAD_REQUEST'],
    ['http://localhost\\@evil.example/', 'BAD_REQUEST'],
    ['http://localhost.evil.example/', 'HOST_NOT_ALLOWED'],
    ['http:///a', 'BAD_REQUEST'],
    ['http://localhost:65536/', 'BAD_REQUEST'],
    ['ftp://localhost/', 'BAD_REQUEST'],
    ['localhost:80', 'BAD_REQUEST'],
    ['localhost/a', 'BAD_REQUEST'],
    ['*', 'BAD_REQUEST'],
    ['', 'BAD_REQUEST'],
    ['?x', 'BAD_REQUEST'],
    ['\\a', 'BAD_REQUEST'],
  ])('%s is refused', (target, code) => {
    expect(judge({ target })).toBe(code);
    expect(judge({ target, method: 'OPTIONS' })).toBe(code);
  });

  it('of an allowed host does not make up for a foreign Host field', () => {
    expect(judge({ target: 'http://localhost/', rawHeaders: ['Host', 'evil.example'] })).toBe('HOST_NOT_ALLOWED');
  });
});

describe('the framing', () => {
  it.each(['chunked', 'CHUNKED', 'Chunked'])('Transfer-Encoding: %s passes', (coding) => {
    expect(judge({ method: 'POST', rawHeaders: [...HOST, 'Transfer-Encoding', coding] })).toBe('pass');
  });

  it.each([
    '',
    'gzip, chunked',
    'chunked, gzip',
    'gzip',
    'identity',
    'chunked;x',
    'chunked, chunked',
    'xchunked',
    '\tchunked\x0b',
  ])('Transfer-Encoding: "%s" is refused', (coding) => {
    expect(judge({ method: 'POST', rawHeaders: [...HOST, 'transfer-ENCODING', coding] })).toBe('BAD_REQUEST');
  });

  it('is refused with two Transfer-Encoding fields, with Content-Length beside it, and in HTTP/1.0', () => {
    const chunked = [...HOST, 'Transfer-Encoding', 'chunked'];
    expect(judge({ rawHeaders: [...chunked, 'Transfer-Encoding', 'chunked'] })).toBe('BAD_REQUEST');
    expect(judge({ rawHeaders: [...chunked, 'Content-Length', '0'] })).toBe('BAD_REQUEST');
    expect(judge({ rawHeaders: chunked, httpVersion: '1.0' })).toBe('BAD_REQUEST');
  });

  it('is refused with two Content-Length fields', () => {
    expect(judge({ rawHeaders: [...HOST, 'Content-Length', '1', 'content-length', '1'] })).toBe('BAD_REQUEST');
    expect(judge({ rawHeaders: [...HOST, 'Content-Length', '1'] })).toBe('pass');
  });

  it.each(['0.9', '2.0', '1.2', ''])('HTTP/%s is refused', (httpVersion) => {
    expect(judge({ httpVersion })).toBe('BAD_REQUEST');
  });
});

it.each(['CONNECT', 'TRACE', 'SOURCE', 'DESCRIBE', 'GET_PARAMETER'])('%s is refused', (method) => {
  expect(judge({ method })).toBe('METHOD_NOT_ALLOWED');
});

describe('a web page', () => {
  const from = (...fields: string[]): Partial<GuardedHead> => ({ rawHeaders: [...HOST, ...fields] });

  it.each([
    ['no sign of one', [], 'pass'],
    ['an allowed Origin', ['Origin', ORIGIN], 'pass'],
    ['an allowed Origin in another case', ['origin', 'HTTP://LocalHost:3000'], 'pass'],
    ['an allowed Origin across sites', ['Origin', ORIGIN, 'Sec-Fetch-Site', 'cross-site'], 'pass'],
    ['a request that a person typed', ['Sec-Fetch-Site', 'None'], 'pass'],
    ['the null Origin', ['Origin', 'null'], 'ORIGIN_NOT_ALLOWED'],
    ['an empty Origin', ['Origin', ''], 'ORIGIN_NOT_ALLOWED'],
    ['a foreign Origin', ['Origin', 'https://evil.example'], 'ORIGIN_NOT_ALLOWED'],
    ['another port', ['Origin', 'http://localhost:3001'], 'ORIGIN_NOT_ALLOWED'],
    ['a prefix', ['Origin', 'http://localhost'], 'ORIGIN_NOT_ALLOWED'],
    ['a suffix', ['Origin', 'http://localhost:3000.evil.example'], 'ORIGIN_NOT_ALLOWED'],
    ['two Origins', ['Origin', ORIGIN, 'Origin', ORIGIN], 'ORIGIN_NOT_ALLOWED'],
    ['a foreign one behind', ['Origin', ORIGIN, 'origin', 'https://evil.example'], 'ORIGIN_NOT_ALLOWED'],
    ['same-origin', ['Sec-Fetch-Site', 'same-origin'], 'ORIGIN_NOT_ALLOWED'],
    ['same-site', ['Sec-Fetch-Site', 'same-site'], 'ORIGIN_NOT_ALLOWED'],
    ['cross-site', ['sec-fetch-SITE', 'cross-site'], 'ORIGIN_NOT_ALLOWED'],
    ['an empty site', ['Sec-Fetch-Site', ''], 'ORIGIN_NOT_ALLOWED'],
    ['two sites', ['Sec-Fetch-Site', 'none', 'Sec-Fetch-Site', 'cross-site'], 'ORIGIN_NOT_ALLOWED'],
  ])('%s', (_, fields, verdict) => {
    expect(judge(from(...fields))).toBe(verdict);
  });

  it('that is allowed may ask beforehand, without the required header, which a preflight cannot carry', () => {
    const fields = [...HOST, 'Origin', ORIGIN, 'Access-Control-Request-Method', 'POST'];
    const head = { method: 'OPTIONS', target: '/', httpVersion: '1.1', rawHeaders: fields };
    expect(guardRequest(OPTIONS, head)).toMatchObject({ kind: 'pass', isPreflight: true, corsOrigin: ORIGIN });
    expect(guardRequest(WITH_SECRET, head)).toMatchObject({ kind: 'pass', isPreflight: true });
    expect(judge({ ...head, method: 'POST' }, WITH_SECRET)).toBe('REQUEST_NOT_ALLOWED');
    const stranger = [...HOST, 'Origin', 'https://evil.example', 'Access-Control-Request-Method', 'POST'];
    expect(judge({ ...head, rawHeaders: stranger }, WITH_SECRET)).toBe('ORIGIN_NOT_ALLOWED');
  });

  it('is no preflight without the method that it asks for, or without an Origin', () => {
    const ask = (rawHeaders: string[]) =>
      guardRequest(OPTIONS, { method: 'OPTIONS', target: '/', httpVersion: '1.1', rawHeaders });
    expect(ask([...HOST, 'Origin', ORIGIN])).toMatchObject({ kind: 'pass', isPreflight: false });
    expect(ask([...HOST, 'Access-Control-Request-Method', 'POST'])).toMatchObject({ kind: 'pass', isPreflight: false });
  });
});

describe('the required header', () => {
  it.each([
    [['X-Key', 'open sesame'], 'pass'],
    [['x-KEY', 'open sesame'], 'pass'],
    [[], 'REQUEST_NOT_ALLOWED'],
    [['X-Key', ''], 'REQUEST_NOT_ALLOWED'],
    [['X-Key', 'open sesam'], 'REQUEST_NOT_ALLOWED'],
    [['X-Key', 'open sesame!'], 'REQUEST_NOT_ALLOWED'],
    [['X-Key', 'Open sesame'], 'REQUEST_NOT_ALLOWED'],
    [['X_Key', 'open sesame'], 'REQUEST_NOT_ALLOWED'],
    [['X-Key', 'open sesame', 'X-Key', 'open sesame'], 'REQUEST_NOT_ALLOWED'],
    [['X-Key', 'wrong', 'x-key', 'open sesame'], 'REQUEST_NOT_ALLOWED'],
  ])('%j: %s', (fields, verdict) => {
    expect(judge({ rawHeaders: [...HOST, ...fields] }, WITH_SECRET)).toBe(verdict);
  });

  it('is never told in the refusal', () => {
    const head = { method: 'GET', target: '/', httpVersion: '1.1', rawHeaders: HOST };
    expect(JSON.stringify(guardRequest(WITH_SECRET, head))).not.toContain('sesame');
  });
});

it('never throws, and lets through only what names one allowed host', () => {
  const name = fc.constantFrom('Host', 'hOST', 'Origin', 'Sec-Fetch-Site', 'Transfer-Encoding', 'X');
  const value = fc.constantFrom('localhost', 'localhost:1', 'evil.example', '', 'null', 'none', 'chunked', ORIGIN);
  const fields = fc.array(fc.tuple(name, value), { maxLength: 5 });
  const anyTarget = fc.oneof(fc.string(), fc.constantFrom('/', '/a', 'http://localhost/', 'http://evil.example/'));
  fc.assert(
    fc.property(fields, anyTarget, (pairs, target) => {
      const verdict = guardRequest(OPTIONS, { method: 'GET', target, httpVersion: '1.1', rawHeaders: pairs.flat() });
      if (verdict.kind === 'refused') return;
      const hosts = pairs.flatMap(([key, given]) => (key.toLowerCase() === 'host' ? [given] : []));
      expect(hosts).toHaveLength(1);
      expect(hosts[0]).toMatch(/^localhost(:1)?$/);
      expect(verdict.target).toMatch(/^\//);
      expect(target).not.toContain('evil.example');
    }),
    { numRuns: 500 },
  );
});
