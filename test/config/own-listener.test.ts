/** A proxy that is the sidecar's own listener: ignored in the shared variables, an error in the sidecar's own settings. */
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load/load.ts';

const BASE = {
  SIDECAR_BASE_URL: 'https://api.partner.example',
  SIDECAR_AUTH_URL: 'https://login.partner.example',
  SIDECAR_CLIENT_ID: 'me',
  SIDECAR_CLIENT_SECRET: 'of-the-tests-only',
  SIDECAR_AUDIENCE: 'https://api.partner.example',
};
const NAMES = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'];

function load(env: Readonly<Record<string, string>>) {
  const loaded = loadConfig({ env: { ...BASE, ...env } });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const { proxy, httpProxy } = loaded.config.egress;
  return { proxies: [proxy?.host, httpProxy?.host], warnings: loaded.warnings };
}

const OWN: readonly (readonly [proxy: string, env: Readonly<Record<string, string>>])[] = [
  ['http://localhost:18080', {}],
  ['localhost:18080', {}],
  ['http://127.0.0.1:18080/', {}],
  ['http://127.1:18080', {}],
  ['http://[::1]:18080', {}],
  ['http://LOCALHOST.:18080', {}],
  ['http://me:secret-of-the-tests@localhost:18080', {}],
  ['http://localhost', { SIDECAR_LISTEN: 'localhost:80' }],
  ['http://localhost:9000', { SIDECAR_LISTEN: '127.0.0.1:9000' }],
  ['http://127.0.0.1:9000', { SIDECAR_LISTEN: '0.0.0.0:9000', SIDECAR_LISTEN_ALLOW_UNAUTHENTICATED_NETWORK: 'true' }],
  [
    'http://sidecar:9000',
    {
      SIDECAR_LISTEN: '0.0.0.0:9000',
      SIDECAR_LISTEN_ALLOW_UNAUTHENTICATED_NETWORK: 'true',
      SIDECAR_ALLOWED_HOSTS: 'localhost, sidecar',
    },
  ],
];

describe.each(OWN)('%s with %j', (proxy, env) => {
  it.each(NAMES)('in %s is ignored with one warning that names the variable and no password', (name) => {
    const { proxies, warnings } = load({ ...env, [name]: proxy });
    expect(proxies).toEqual([undefined, undefined]);
    expect(warnings.filter((warning) => warning.startsWith(`${name} names the sidecar's own listener`))).toHaveLength(
      1,
    );
    expect(warnings.join()).not.toContain('secret-of-the-tests');
  });

  it.each([
    ['SIDECAR_EGRESS_PROXY', 'egress.proxy'],
    ['SIDECAR_EGRESS_HTTP_PROXY', 'egress.httpProxy'],
  ])('in %s is an error', (variable, key) => {
    const loaded = loadConfig({ env: { ...BASE, ...env, [variable]: proxy } });
    expect(loaded).toMatchObject({ ok: false, problems: [{ key, variable }] });
    expect(JSON.stringify(!loaded.ok && loaded.problems)).toContain('it would call itself');
    expect(JSON.stringify(loaded)).not.toContain('secret-of-the-tests');
  });
});

it.each([
  ['http://localhost:3128', {}],
  ['http://proxy.example:18080', {}],
  ['http://localhost:18080', { SIDECAR_LISTEN: 'localhost:0' }],
  ['http://localhost:18080', { SIDECAR_LISTEN: 'unix:/run/sidecar.sock' }],
])('%s with %j is another proxy', (proxy, env) => {
  const { proxies, warnings } = load({ ...env, HTTPS_PROXY: proxy });
  expect(proxies).toEqual([new URL(proxy).host, undefined]);
  expect(warnings).toEqual([]);
});

it('beside another proxy, only the one that is the sidecar is ignored', () => {
  const own = 'http://localhost:18080';
  expect(load({ http_proxy: own, HTTPS_PROXY: 'http://proxy.example:3128' }).proxies).toEqual([
    'proxy.example:3128',
    undefined,
  ]);
  expect(load({ https_proxy: own, HTTPS_PROXY: 'http://proxy.example:3128' }).proxies).toEqual([
    'proxy.example:3128',
    undefined,
  ]);
});
