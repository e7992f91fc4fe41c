import { describe, expect, it } from 'vitest';
import { isLocalPeer, guardAdminRequest } from '../../src/admin/admin-guard.ts';

const allowedHosts = [
  { host: 'localhost', port: undefined },
  { host: 'metrics.example', port: 19464 },
];

function check(fields: readonly [string, string][], httpVersion = '1.1'): string {
  return guardAdminRequest({ httpVersion, rawHeaders: fields.flat() }, allowedHosts)?.code ?? 'pass';
}

describe('Host', () => {
  it.each([
    'localhost',
    'LocalHost:19464',
    'localhost:1',
    '127.0.0.1',
    '10.1.2.3:19464',
    '[::1]:19464',
    '[2001:db8::1]',
    'metrics.example:19464',
  ])('%s passes', (host) => {
    expect(check([['Host', host]])).toBe('pass');
  });

  it.each([
    'evil.example',
    'evil.example:19464',
    'localhost.evil.example',
    'localhost.',
    'metrics.example',
    'metrics.example:80',
    '127.0.0.1.evil.example',
    '127.1',
    '0x7f000001',
    '2130706433',
  ])('"%s" is refused', (host) => {
    expect(check([['Host', host]])).toBe('HOST_NOT_ALLOWED');
  });

  it.each([
    '[::1',
    '::1',
    '[127.0.0.1]',
    '[::1%lo]',
    'localhost:99999',
    'localhost:1:2',
    'user@localhost',
    'localhost/',
    'localhost, evil.example',
    'evil.example#localhost',
    '',
    'localhost:x',
  ])('"%s" is invalid', (host) => {
    expect(check([['Host', host]])).toBe('BAD_REQUEST');
  });

  it('is required exactly once; HTTP/1.0 may omit it', () => {
    expect(check([])).toBe('BAD_REQUEST');
    expect(check([], '1.0')).toBe('pass');
    const twice: [string, string][] = [
      ['Host', 'localhost'],
      ['host', 'localhost'],
    ];
    expect(check(twice)).toBe('BAD_REQUEST');
    expect(check(twice, '1.0')).toBe('BAD_REQUEST');
  });

  it('is named in the refusal, truncated, with the variable to set', () => {
    const rawHeaders = ['Host', `${'e'.repeat(5000)}.example`];
    const refusal = guardAdminRequest({ httpVersion: '1.1', rawHeaders }, allowedHosts);
    expect(refusal?.detail).toMatch(/"e{100}…".*SIDECAR_ADMIN_ALLOWED_HOSTS/);
  });
});

describe('Origin and Sec-Fetch-Site', () => {
  const from = (fields: readonly [string, string][], host = 'localhost:19464') => check([['Host', host], ...fields]);

  it.each([
    ['no browser', []],
    ['the same origin', [['Origin', 'http://localhost:19464']]],
    ['the same origin in capitals', [['Origin', 'HTTP://LOCALHOST:19464']]],
    ['a person typing the address', [['Sec-Fetch-Site', 'none']]],
    ['the page itself', [['Sec-Fetch-Site', 'same-origin']]],
  ] satisfies [string, [string, string][]][])('%s passes', (_, fields) => {
    expect(from(fields)).toBe('pass');
  });

  it.each([
    ['another site', [['Origin', 'http://evil.example']]],
    ['another port', [['Origin', 'http://localhost:8080']]],
    ['another scheme', [['Origin', 'https://localhost:19464']]],
    ['an opaque origin', [['Origin', 'null']]],
    ['an empty origin', [['Origin', '']]],
    [
      'two origins',
      [
        ['Origin', 'http://localhost:19464'],
        ['Origin', 'http://evil.example'],
      ],
    ],
    ['cross-site without Origin', [['Sec-Fetch-Site', 'cross-site']]],
    ['same-site', [['Sec-Fetch-Site', 'same-site']]],
  ] satisfies [string, [string, string][]][])('%s is refused', (_, fields) => {
    expect(from(fields)).toBe('ORIGIN_NOT_ALLOWED');
  });

  it('refuses a foreign origin also with an IP literal as Host', () => {
    expect(from([['Origin', 'http://evil.example']], '127.0.0.1:19464')).toBe('ORIGIN_NOT_ALLOWED');
  });

  it('refuses every Origin without a Host', () => {
    expect(check([['Origin', 'http://']], '1.0')).toBe('ORIGIN_NOT_ALLOWED');
  });
});

it.each([
  [undefined, false],
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['::1', true],
  ['::ffff:127.0.0.1', true],
  ['10.0.0.1', false],
  ['::ffff:10.0.0.1', false],
  ['2001:db8::127.0.0.1', false],
  ['128.0.0.1', false],
  ['127.evil', false],
])('peer %s is local: %s', (address, local) => {
  expect(isLocalPeer(address, false)).toBe(local);
});

it('a peer without an address is local only on a socket file', () => {
  expect([isLocalPeer(undefined, true), isLocalPeer('10.0.0.1', true)]).toEqual([true, false]);
});
