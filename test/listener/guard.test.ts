/** The guard's decisions as tables: Host, target forms, framing, Origin, Sec-Fetch-Site, the required header. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Guard, type GuardedRequest, type GuardOptions } from '../../src/listener/guard.ts';
import { SidecarError } from '../../src/platform/errors.ts';

const ORIGIN = 'http://localhost:3000';
const OWN_PORT = 18080;
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

/** One guard for all tests with the same options: what it keeps of one request must not change the next decision. */
const guards = new Map<GuardOptions, Guard>();

function check(request: Partial<GuardedRequest>, options: GuardOptions = OPTIONS) {
  const guard = guards.get(options) ?? new Guard(options);
  guards.set(options, guard);
  const socket = { localPort: OWN_PORT };
  return guard.check({ method: 'GET', url: '/', httpVersion: '1.1', rawHeaders: HOST, socket, ...request });
}

/** `pass`, or the code of the refusal. */
function decide(request: Partial<GuardedRequest>, options: GuardOptions = OPTIONS): string {
  const decision = check(request, options);
  return decision instanceof SidecarError ? decision.code : 'pass';
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
    expect(decide({ rawHeaders: ['Host', host] })).toBe('pass');
  });

  it.each(FOREIGN_HOSTS)('%s is not allowed', (host) => {
    expect(decide({ rawHeaders: ['Host', host] })).toBe('HOST_NOT_ALLOWED');
  });

  it.each(INVALID_HOSTS)('"%s" is invalid on every kind of listener', (host) => {
    for (const options of [OPTIONS, ON_SOCKET_FILE])
      for (const httpVersion of ['1.0', '1.1'])
        for (const url of ['/', 'http://localhost:18080/'])
          expect(decide({ rawHeaders: ['Host', host], httpVersion, url }, options)).toBe('BAD_REQUEST');
  });

  it('is invalid with a character that no host may contain, at any position', () => {
    const foreign = fc.constantFrom(...Array.from(' \t,@/\\?#"<>^`{}|[]\u0000\u007f\u00e4\u20ac'));
    const names = fc.constantFrom('localhost', 'evil.example', '127.0.0.1');
    fc.assert(
      fc.property(
        names,
        foreign,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom('', ':80'),
        (...parts) => {
          const [name, character, share, port] = parts;
          const at = Math.round(share * name.length);
          const host = name.slice(0, at) + character + name.slice(at) + port;
          for (const options of [OPTIONS, ON_SOCKET_FILE])
            expect(decide({ rawHeaders: ['Host', host] }, options)).toBe('BAD_REQUEST');
        },
      ),
    );
  });

  it('is valid with a port up to 65535 only', () => {
    fc.assert(
      fc.property(fc.nat({ max: 200_000 }), (port) => {
        const code = port > 65_535 ? 'BAD_REQUEST' : 'pass';
        expect(decide({ rawHeaders: ['Host', `localhost:${String(port)}`] })).toBe(code);
      }),
    );
  });

  it('is required exactly once, in any case; HTTP/1.0 may have none', () => {
    expect(decide({ rawHeaders: [] })).toBe('BAD_REQUEST');
    expect(decide({ rawHeaders: [], url: 'http://localhost:18080/' })).toBe('BAD_REQUEST');
    expect(decide({ rawHeaders: [], httpVersion: '1.0' })).toBe('pass');
    for (const httpVersion of ['1.0', '1.1']) {
      const twice = ['Host', 'localhost', 'hOST', 'localhost'];
      expect(decide({ rawHeaders: twice, httpVersion })).toBe('BAD_REQUEST');
      expect(decide({ rawHeaders: ['Host', 'localhost', 'Host', 'evil'], httpVersion })).toBe('BAD_REQUEST');
    }
  });

  it('may have any value or be absent on a socket file, but not be repeated', () => {
    for (const url of ['/', 'http://anything/']) {
      expect(decide({ url, rawHeaders: ['Host', 'anything'] }, ON_SOCKET_FILE)).toBe('pass');
      expect(decide({ url, rawHeaders: [] }, ON_SOCKET_FILE)).toBe('pass');
      expect(decide({ url, rawHeaders: ['Host', 'a', 'Host', 'a'] }, ON_SOCKET_FILE)).toBe('BAD_REQUEST');
    }
  });

  it('is checked again when it changes', () => {
    const options = { ...OPTIONS };
    expect(decide({}, options)).toBe('pass');
    expect(decide({ rawHeaders: ['Host', 'evil.example'] }, options)).toBe('HOST_NOT_ALLOWED');
    expect(decide({ rawHeaders: [...HOST, ...HOST] }, options)).toBe('BAD_REQUEST');
  });
});

describe('the target', () => {
  it.each([
    ['/a?b', '/a?b'],
    ['//evil.example/a', '//evil.example/a'],
    ['http://localhost:18080/a?b', '/a?b'],
    ['HTTPS://LOCALHOST:18080/a', '/a'],
    ['http://[::1]:18080/a', '/a'],
    ['http://sidecar.test:18080/a', '/a'],
    ['http://plain.test/a', '/a'],
    ['http://plain.test:80/a', '/a'],
    ['http://localhost:18080', '/'],
    ['http://localhost:18080?x=1', '/?x=1'],
    ['http://localhost:18080//evil.example', '//evil.example'],
  ])('%s becomes %s', (target, originForm) => {
    expect(check({ url: target })).toMatchObject({ target: originForm });
  });

  it.each([
    ['http://evil.example/', 'HOST_NOT_ALLOWED'],
    ['http://localhost/', 'HOST_NOT_ALLOWED'],
    ['https://localhost/', 'HOST_NOT_ALLOWED'],
    ['http://localhost:9999/x', 'HOST_NOT_ALLOWED'],
    ['http://127.0.0.1:18081/x', 'HOST_NOT_ALLOWED'],
    ['http://plain.test:18080/x', 'HOST_NOT_ALLOWED'],
    ['https://plain.test/x', 'HOST_NOT_ALLOWED'],
    ['http://user:password@localhost:18080/', 'BAD_REQUEST'],
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
    expect(decide({ url: target })).toBe(code);
    expect(decide({ url: target, method: 'OPTIONS' })).toBe(code);
  });

  it('with an allowed host is refused with another Host field', () => {
    expect(decide({ url: 'http://localhost:18080/', rawHeaders: ['Host', 'evil.example'] })).toBe('HOST_NOT_ALLOWED');
  });
});

describe('a target that names the upstream', () => {
  const baseUrls = [new URL('https://api.partner.example/sales/v1'), new URL('https://other.example:8443/')];
  const off: GuardOptions = { ...OPTIONS, baseUrls };
  const on: GuardOptions = { ...off, forwardProxy: true };
  const named = (url: string, fields: readonly string[] = []): Partial<GuardedRequest> => ({
    url,
    rawHeaders: ['Host', /^https?:\/\/([^/?]*)/.exec(url)?.[1] ?? '', ...fields],
  });

  it.each([
    ['http://api.partner.example/sales/v1/a?b', '/sales/v1/a?b'],
    ['http://API.Partner.example:80/sales/v1/a', '/sales/v1/a'],
    ['http://api.partner.example:443/x', '/x'],
    ['https://api.partner.example/x', '/x'],
    ['http://other.example:8443/x', '/x'],
    ['http://other.example', '/'],
  ])('%s passes with forwardProxy, and its refusal without names the setting', (url, path) => {
    expect(check(named(url), on)).toMatchObject({ upstream: { path } });
    const refusal = check(named(url), off);
    expect(refusal).toMatchObject({ code: 'HOST_NOT_ALLOWED' });
    expect(refusal instanceof SidecarError && refusal.message).toContain('SIDECAR_LISTEN_FORWARD_PROXY');
  });

  it.each([
    'http://api.partner.example:8443/x',
    'http://api.partner.example:8080/x',
    'http://evil.example/x',
    'http://api.partner.example.evil.example/x',
    'http://localhost:9999/x',
  ])('%s is for another server', (url) => {
    for (const options of [on, off]) expect(decide(named(url), options)).toBe('HOST_NOT_ALLOWED');
  });

  it('is not allowed by its Host alone, before and after a request in absolute-form', () => {
    const originForm = { url: '/sales/v1/a', rawHeaders: ['Host', 'api.partner.example'] };
    expect(decide(originForm, on)).toBe('HOST_NOT_ALLOWED');
    expect(decide(named('http://api.partner.example/sales/v1/a'), on)).toBe('pass');
    expect(decide(originForm, on)).toBe('HOST_NOT_ALLOWED');
  });

  it.each([
    [['Host', 'localhost'], 'BAD_REQUEST'],
    [['Host', 'localhost:18080'], 'BAD_REQUEST'],
    [['Host', 'api.partner.example:443'], 'BAD_REQUEST'],
    [['Host', 'api.partner.example:8443'], 'BAD_REQUEST'],
    [['Host', 'api.partner.example', 'Host', 'api.partner.example'], 'BAD_REQUEST'],
    [[], 'BAD_REQUEST'],
    [['Host', 'api.partner.example:80'], 'pass'],
    [['Host', 'API.PARTNER.EXAMPLE'], 'pass'],
  ])('with the fields %j: %s', (rawHeaders, expected) => {
    const url = 'http://api.partner.example/sales/v1/a';
    expect(decide({}, on)).toBe('pass');
    expect(decide({ url, rawHeaders }, on)).toBe(expected);
  });

  it('may come without Host in HTTP/1.0', () => {
    expect(decide({ url: 'http://api.partner.example/x', rawHeaders: [], httpVersion: '1.0' }, on)).toBe('pass');
  });

  it.each([
    ['http://api.partner.example/other', 'pass'],
    ['https://API.partner.example:443/', 'pass'],
    ['/relative', 'pass'],
    ['', 'pass'],
    ['http://evil.example/', 'ORIGIN_NOT_ALLOWED'],
    ['http://api.partner.example.evil.example/', 'ORIGIN_NOT_ALLOWED'],
    ['http://api.partner.example@evil.example/', 'ORIGIN_NOT_ALLOWED'],
    ['//evil.example/', 'ORIGIN_NOT_ALLOWED'],
    ['\\\\evil.example/', 'ORIGIN_NOT_ALLOWED'],
    ['about:client', 'ORIGIN_NOT_ALLOWED'],
    ['http://[', 'ORIGIN_NOT_ALLOWED'],
    ['http://localhost:18080/', 'ORIGIN_NOT_ALLOWED'],
  ])('with the Referer "%s": %s', (referer, expected) => {
    expect(decide(named('http://api.partner.example/x', ['Referer', referer]), on)).toBe(expected);
    const own = ['Host', 'localhost:18080', 'Referer', 'http://evil.example/'];
    expect(decide({ url: 'http://localhost:18080/x', rawHeaders: own }, on)).toBe('ORIGIN_NOT_ALLOWED');
    expect(decide({ url: '/x', rawHeaders: own }, on)).toBe('pass');
  });

  it('needs the required header, and no sign of a page', () => {
    const url = 'http://api.partner.example/x';
    const requiredHeader = { name: 'x-key', value: 'open sesame' };
    expect(decide(named(url), { ...on, requiredHeader })).toBe('REQUEST_NOT_ALLOWED');
    expect(decide(named(url, ['X-Key', 'open sesame']), { ...on, requiredHeader })).toBe('pass');
    expect(decide(named(url, ['Origin', 'http://api.partner.example']), on)).toBe('ORIGIN_NOT_ALLOWED');
    expect(decide(named(url, ['Sec-Fetch-Site', 'cross-site']), on)).toBe('ORIGIN_NOT_ALLOWED');
  });

  it('with user information is refused, and its password is not quoted', () => {
    const refusal = check(named('http://me:sesame@api.partner.example/x'), on);
    expect(refusal).toMatchObject({ code: 'BAD_REQUEST' });
    expect(refusal instanceof SidecarError && refusal.message).not.toContain('sesame');
  });
});

describe('the framing', () => {
  it.each(['chunked', 'CHUNKED', 'Chunked'])('Transfer-Encoding: %s passes', (coding) => {
    expect(decide({ method: 'POST', rawHeaders: [...HOST, 'Transfer-Encoding', coding] })).toBe('pass');
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
    expect(decide({ method: 'POST', rawHeaders: [...HOST, 'transfer-ENCODING', coding] })).toBe('BAD_REQUEST');
  });

  it('is refused with two Transfer-Encoding fields, with Content-Length beside it, and in HTTP/1.0', () => {
    const chunked = [...HOST, 'Transfer-Encoding', 'chunked'];
    expect(decide({ rawHeaders: [...chunked, 'Transfer-Encoding', 'chunked'] })).toBe('BAD_REQUEST');
    expect(decide({ rawHeaders: [...chunked, 'Content-Length', '0'] })).toBe('BAD_REQUEST');
    expect(decide({ rawHeaders: chunked, httpVersion: '1.0' })).toBe('BAD_REQUEST');
  });

  it('is refused with two Content-Length fields', () => {
    expect(decide({ rawHeaders: [...HOST, 'Content-Length', '1', 'content-length', '1'] })).toBe('BAD_REQUEST');
    expect(decide({ rawHeaders: [...HOST, 'Content-Length', '1'] })).toBe('pass');
  });

  it.each(['0.9', '2.0', '1.2', ''])('HTTP/%s is refused', (httpVersion) => {
    expect(decide({ httpVersion })).toBe('BAD_REQUEST');
  });
});

it.each(['CONNECT', 'TRACE', 'SOURCE', 'DESCRIBE', 'GET_PARAMETER'])('%s is refused', (method) => {
  expect(decide({ method })).toBe('METHOD_NOT_ALLOWED');
});

describe('a web page', () => {
  const from = (...fields: string[]): Partial<GuardedRequest> => ({ rawHeaders: [...HOST, ...fields] });

  it.each([
    ['no sign of a page', [], 'pass'],
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
  ])('%s', (_, fields, expected) => {
    expect(decide(from(...fields))).toBe(expected);
  });

  const UPGRADE = ['Upgrade', 'websocket', 'Connection', 'Upgrade'];
  const OWN = ['Origin', 'http://localhost:18080'];
  it.each([
    ['a program that names the listener', [...OWN, ...UPGRADE], {}, 'pass'],
    ['it in another case', ['origin', 'HTTP://LocalHost:18080', 'upgrade', 'WebSocket'], {}, 'pass'],
    ['it behind a TLS proxy', ['Origin', 'https://localhost:18080', ...UPGRADE], {}, 'pass'],
    ['it without an upgrade', OWN, {}, 'ORIGIN_NOT_ALLOWED'],
    ['it with another upgrade', [...OWN, 'Upgrade', 'h2c'], {}, 'ORIGIN_NOT_ALLOWED'],
    ['it with two upgrades', [...OWN, ...UPGRADE, 'Upgrade', 'websocket'], {}, 'ORIGIN_NOT_ALLOWED'],
    ['it with a POST', [...OWN, ...UPGRADE], { method: 'POST' }, 'ORIGIN_NOT_ALLOWED'],
    ['it in HTTP/1.0', [...OWN, ...UPGRADE], { httpVersion: '1.0' }, 'ORIGIN_NOT_ALLOWED'],
    ['it twice', [...OWN, ...OWN, ...UPGRADE], {}, 'ORIGIN_NOT_ALLOWED'],
    ['another port', ['Origin', 'http://localhost:3001', ...UPGRADE], {}, 'ORIGIN_NOT_ALLOWED'],
    ['another name of the listener', ['Origin', 'http://127.0.0.1:18080', ...UPGRADE], {}, 'ORIGIN_NOT_ALLOWED'],
    ['another site', ['Origin', 'https://evil.example', ...UPGRADE], {}, 'ORIGIN_NOT_ALLOWED'],
    ['the null Origin', ['Origin', 'null', ...UPGRADE], {}, 'ORIGIN_NOT_ALLOWED'],
    ['a browser', [...OWN, ...UPGRADE, 'Sec-Fetch-Mode', 'websocket'], {}, 'ORIGIN_NOT_ALLOWED'],
    ['a browser, same-origin', [...OWN, ...UPGRADE, 'sec-fetch-site', 'same-origin'], {}, 'ORIGIN_NOT_ALLOWED'],
    ['an older browser', [...OWN, ...UPGRADE, 'User-Agent', 'Mozilla/5.0 (X11)'], {}, 'ORIGIN_NOT_ALLOWED'],
  ])('or not: a WebSocket upgrade of %s', (_, fields, request, expected) => {
    expect(decide({ ...request, rawHeaders: ['Host', 'localhost:18080', ...fields] })).toBe(expected);
  });

  it('of a rebound name gets no WebSocket, although its Origin is its Host', () => {
    const rawHeaders = ['Host', 'evil.example:18080', 'Origin', 'http://evil.example:18080', ...UPGRADE];
    expect(decide({ rawHeaders })).toBe('HOST_NOT_ALLOWED');
  });

  it('that is allowed may send a preflight without the required header', () => {
    const fields = [...HOST, 'Origin', ORIGIN, 'Access-Control-Request-Method', 'POST'];
    const head = { method: 'OPTIONS', rawHeaders: fields };
    expect(check(head)).toMatchObject({ isPreflight: true, corsOrigin: ORIGIN });
    expect(check(head, WITH_SECRET)).toMatchObject({ isPreflight: true });
    expect(decide({ ...head, method: 'POST' }, WITH_SECRET)).toBe('REQUEST_NOT_ALLOWED');
    const otherPage = [...HOST, 'Origin', 'https://evil.example', 'Access-Control-Request-Method', 'POST'];
    expect(decide({ ...head, rawHeaders: otherPage }, WITH_SECRET)).toBe('ORIGIN_NOT_ALLOWED');
  });

  it('sends no preflight without Access-Control-Request-Method or without Origin', () => {
    const send = (rawHeaders: string[]) => check({ method: 'OPTIONS', rawHeaders });
    expect(send([...HOST, 'Origin', ORIGIN])).toMatchObject({ isPreflight: false });
    expect(send([...HOST, 'Access-Control-Request-Method', 'POST'])).toMatchObject({ isPreflight: false });
  });
});

describe('the required header', () => {
  it('is not satisfied by its absence, even if the configured value is empty', () => {
    const options: GuardOptions = { ...OPTIONS, requiredHeader: { name: 'x-key', value: '' } };
    expect(decide({ method: 'GET', rawHeaders: HOST }, options)).toBe('REQUEST_NOT_ALLOWED');
  });

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
  ])('%j: %s', (fields, expected) => {
    expect(decide({ rawHeaders: [...HOST, ...fields] }, WITH_SECRET)).toBe(expected);
  });

  it('has a value that the refusal never contains', () => {
    expect(JSON.stringify(check({}, WITH_SECRET))).not.toContain('sesame');
  });
});

it('never throws, and passes only requests with one allowed host', () => {
  const name = fc.constantFrom('Host', 'hOST', 'Origin', 'Sec-Fetch-Site', 'Transfer-Encoding', 'X');
  const value = fc.constantFrom('localhost', 'localhost:1', 'evil.example', '', 'null', 'none', 'chunked', ORIGIN);
  const fields = fc.array(fc.tuple(name, value), { maxLength: 5 });
  const anyTarget = fc.oneof(
    fc.string(),
    fc.constantFrom('/', '/a', 'http://localhost:18080/', 'http://evil.example/'),
  );
  fc.assert(
    fc.property(fields, anyTarget, (pairs, target) => {
      const decision = check({ url: target, rawHeaders: pairs.flat() });
      if (decision instanceof SidecarError) return;
      const hosts = pairs.flatMap(([key, given]) => (key.toLowerCase() === 'host' ? [given] : []));
      expect(hosts).toHaveLength(1);
      expect(hosts[0]).toMatch(/^localhost(:1)?$/);
      expect(decision.target).toMatch(/^\//);
      expect(target).not.toContain('evil.example');
    }),
    { numRuns: 500 },
  );
});
