/** Which proxy leads to which destination. */
import { expect, test } from 'vitest';
import { getHostAndPort, createProxySelector } from '../../../src/platform/egress/proxy-selector.ts';
import type { ProxySelectorOptions } from '../../../src/platform/egress/proxy-selector.ts';

function wayTo(destination: string, options: Partial<ProxySelectorOptions> = {}): string {
  const egress = createProxySelector({
    proxy: new URL('http://secure.test:3128'),
    httpProxy: new URL('http://plain.test:3128'),
    noProxy: [],
    caFile: undefined,
    ...options,
  });
  return egress(new URL(destination))?.url.hostname ?? 'directly';
}

test('https: and http: destinations have their own proxies', () => {
  expect([wayTo('https://api.test/'), wayTo('http://api.test/')]).toEqual(['secure.test', 'plain.test']);
  expect(wayTo('https://api.test/', { proxy: undefined })).toBe('directly');
  expect(wayTo('http://api.test/', { httpProxy: undefined })).toBe('directly');
});

test.each(['localhost', '127.0.0.1', '127.8.8.8', '[::1]'])('%s is reached directly', (host) => {
  expect([wayTo(`https://${host}:8443`), wayTo(`http://${host}`)]).toEqual(['directly', 'directly']);
});

test.each([
  ['https://api.test/', ['api.test'], 'directly'],
  ['https://API.test./', ['api.test'], 'directly'],
  ['https://api.test/', ['other.test', '.test'], 'directly'],
  ['https://api.test/', ['api.test:443'], 'directly'],
  ['https://api.test:8443/', ['api.test:443'], 'secure.test'],
  ['http://api.test/', ['api.test:80'], 'directly'],
  ['https://[2001:db8::1]/', ['2001:db8::/32'], 'directly'],
  ['https://10.1.1.1/', ['10.0.0.0/8'], 'directly'],
  ['https://10.1.1.1/', ['nonsense of 10.0.0.0/8'], 'secure.test'],
])('%s with %j: %s', (destination, noProxy, way) => {
  expect(wayTo(destination, { noProxy })).toBe(way);
});

test('an https: proxy has a TLS context, an http: proxy has none', () => {
  const options = { httpProxy: undefined, noProxy: [], caFile: undefined };
  const way = (proxy: string) =>
    createProxySelector({ ...options, proxy: new URL(proxy) })(new URL('https://api.test'));
  expect(way('https://proxy.test')?.tlsContext).toBeTypeOf('function');
  expect(way('http://proxy.test')?.tlsContext).toBeUndefined();
});

test('getHostAndPort gives the host without brackets, and the port of the URL or of its scheme', () => {
  expect(getHostAndPort(new URL('https://[2001:db8::1]/'))).toEqual({ host: '2001:db8::1', port: 443 });
  expect(getHostAndPort(new URL('http://a.test./'))).toEqual({ host: 'a.test', port: 80 });
  expect(getHostAndPort(new URL('https://a.test:8443/'))).toEqual({ host: 'a.test', port: 8443 });
});
