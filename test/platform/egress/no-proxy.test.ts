/** Entries of NO_PROXY: what each covers and what it does not. */
import { describe, expect, test } from 'vitest';
import { parseNoProxyEntry } from '../../../src/platform/egress/no-proxy.ts';

function covers(entry: string, host: string, port = 443): boolean | undefined {
  return parseNoProxyEntry(entry)?.(host, port);
}

describe('an entry', () => {
  test.each([
    ['*', ['a.test', '10.0.0.1', '2001:db8::1'], []],
    ['example.com', ['example.com', 'api.example.com', 'a.b.example.com'], ['badexample.com', 'example.com.evil.test']],
    ['Example.COM', ['example.com'], []],
    ['example.com.', ['example.com'], ['com']],
    ['.example.com', ['api.example.com', 'a.b.example.com'], ['example.com', 'badexample.com']],
    ['*.example.com', ['api.example.com'], ['example.com']],
    ['intranet', ['intranet', 'a.intranet'], ['intranet2']],
    ['my_service', ['my_service'], []],
    ['10.1.2.3', ['10.1.2.3'], ['10.1.2.30', 'a.test']],
    ['10.0.0.0/8', ['10.0.0.1', '10.255.255.255', '::ffff:10.1.1.1'], ['11.0.0.1', '10.example.com']],
    ['192.168.1.0/24', ['192.168.1.9'], ['192.168.2.9']],
    ['0.0.0.0/0', ['1.2.3.4'], ['a.test', '2001:db8::1']],
    ['2001:db8::/32', ['2001:db8::1', '2001:db8:ffff::1'], ['2001:db9::1']],
    ['2001:db8::1', ['2001:db8::1', '2001:db8:0:0:0:0:0:1'], ['2001:db8::2']],
    ['[2001:db8::1]', ['2001:db8::1'], ['2001:db8::2']],
  ])('%s', (entry, covered, others) => {
    for (const host of covered) expect([host, covers(entry, host)]).toEqual([host, true]);
    for (const host of others) expect([host, covers(entry, host)]).toEqual([host, false]);
  });

  test.each(['example.com:8443', '.example.com:8443', '10.1.2.3:8443', '[2001:db8::1]:8443'])(
    'with a port covers that port alone: %s',
    (entry) => {
      const host = entry.includes('db8') ? '2001:db8::1' : entry.startsWith('10') ? '10.1.2.3' : 'api.example.com';
      expect([covers(entry, host, 8443), covers(entry, host, 443)]).toEqual([true, false]);
    },
  );

  test.each([
    '',
    ' ',
    'a b',
    'http://a.test',
    '10.*',
    '10.0.0.0/33',
    '2001:db8::/129',
    '10.0.0/8',
    'a.test/24',
    '256.1.1.1',
    '1.2.3',
    '[a.test]',
    '[2001:db8::1',
    'a.test:',
    'a.test:x',
    'a..b',
    '-a.test',
    '**',
  ])('that is invalid is undefined: %j', (entry) => {
    expect(parseNoProxyEntry(entry)).toBeUndefined();
  });
});
