/** Forward proxies: settings, and the variables that all programs share. */
import { describe, expect, test } from 'vitest';
import { renderConfig } from '../../src/commands/render-config.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { BASE_ENV, configOf, problemsOf, scratchFile } from './base-env.ts';

type Env = Readonly<Record<string, string>>;

function egressOf(env: Env, yaml = ''): readonly [https: string, http: string, noProxy: readonly string[]] {
  const { proxy, httpProxy, noProxy } = configOf(env, { file: scratchFile(yaml) }).egress;
  return [proxy?.href ?? 'none', httpProxy?.href ?? 'none', noProxy];
}

describe('the proxy', () => {
  test.each<[string, Env, string, readonly [string, string]]>([
    ['none', {}, '', ['none', 'none']],
    ['set', { SIDECAR_EGRESS_PROXY: 'http://p:1' }, '', ['http://p:1/', 'http://p:1/']],
    [
      'set without a scheme',
      { SIDECAR_EGRESS_PROXY: 'p.test:3128' },
      '',
      ['http://p.test:3128/', 'http://p.test:3128/'],
    ],
    ['set in a file', {}, 'egress: { proxy: "https://p:1" }', ['https://p:1/', 'https://p:1/']],
    [
      'set for both kinds',
      { SIDECAR_EGRESS_PROXY: 'http://p:1', SIDECAR_EGRESS_HTTP_PROXY: 'http://q:2' },
      '',
      ['http://p:1/', 'http://q:2/'],
    ],
    ['of the environment', { HTTPS_PROXY: 'http://p:1', HTTP_PROXY: 'http://q:2' }, '', ['http://p:1/', 'http://q:2/']],
    ['of the environment, for https: alone', { HTTPS_PROXY: 'http://p:1' }, '', ['http://p:1/', 'none']],
    ['of the environment, for http: alone', { http_proxy: 'q:2' }, '', ['none', 'http://q:2/']],
    ['in small letters first', { HTTPS_PROXY: 'http://p:1', https_proxy: 'http://q:2' }, '', ['http://q:2/', 'none']],
    ['empty', { HTTPS_PROXY: '', https_proxy: '' }, '', ['none', 'none']],
    [
      'set, over the environment',
      { HTTPS_PROXY: 'http://p:1' },
      'egress: { proxy: q:2 }',
      ['http://q:2/', 'http://q:2/'],
    ],
    [
      'switched off',
      { HTTPS_PROXY: 'http://p:1', HTTP_PROXY: 'q:2', SIDECAR_EGRESS_PROXY: 'none' },
      '',
      ['none', 'none'],
    ],
  ])('%s', (_, env, yaml, ways) => {
    expect(egressOf(env, yaml).slice(0, 2)).toEqual(ways);
  });

  test.each([
    ['socks5://p:1', 'SOCKS is not supported'],
    ['ftp://p:1', 'expected a proxy such as'],
    ['http://p:1/path', 'expected a proxy such as'],
    ['http://p:1?q', 'expected a proxy such as'],
    ['p q', 'expected a proxy such as'],
    ['http://user:sesame%@p:1', 'expected a proxy such as'],
    ['http://user:sesame@', 'expected a proxy such as'],
  ])('refuses %s from any source without showing a password', (text, reason) => {
    for (const variable of ['SIDECAR_EGRESS_PROXY', 'HTTPS_PROXY', 'http_proxy']) {
      const [line, ...others] = problemsOf({ [variable]: text });
      expect(line).toContain(reason);
      expect(line).toContain(variable);
      expect(line).not.toContain('sesame');
      expect(others).toEqual([]);
    }
  });
});

describe('destinations without a proxy', () => {
  test.each<[string, Env, string, readonly string[]]>([
    ['nothing', {}, '', []],
    ['set', { SIDECAR_EGRESS_NO_PROXY: 'a.test, .b.test,10.0.0.0/8' }, '', ['a.test', '.b.test', '10.0.0.0/8']],
    ['set in a file', {}, 'egress: { noProxy: ["*"] }', ['*']],
    ['of the environment', { NO_PROXY: 'a.test .b.test,, 10.0.0.1:80' }, '', ['a.test', '.b.test', '10.0.0.1:80']],
    ['set, over the environment', { no_proxy: 'a.test' }, 'egress: { noProxy: [b.test] }', ['b.test']],
    ['set to nothing, over the environment', { no_proxy: 'a.test' }, 'egress: { noProxy: [] }', []],
  ])('%s', (_, env, yaml, entries) => {
    expect(egressOf(env, yaml)[2]).toEqual(entries);
  });

  test('an invalid entry is a problem in a setting and a warning in NO_PROXY', () => {
    expect(problemsOf({ SIDECAR_EGRESS_NO_PROXY: 'a.test,10.*' })).toEqual([
      expect.stringMatching(/^egress\.noProxy .*entry "10\.\*": expected host/),
    ]);
    const loaded = loadConfig({ env: { ...BASE_ENV, NO_PROXY: '10.*,a.test' } });
    expect(loaded.warnings).toEqual(['NO_PROXY: the entry "10.*" is not understood here, and ignored']);
    expect(loaded.ok && loaded.config.egress.noProxy).toEqual(['a.test']);
  });
});

test('prints the proxy with its origin, without the password', () => {
  const ambient = renderConfig({
    env: { ...BASE_ENV, HTTPS_PROXY: 'http://user:sesame@p.test:3128', no_proxy: 'a.test' },
  });
  expect(ambient.stdout).toContain('  proxy: http://********@p.test:3128 # environment HTTPS_PROXY\n');
  expect(ambient.stdout).toContain('  httpProxy: none # environment, HTTP_PROXY not set\n');
  expect(ambient.stdout).toContain('  noProxy: [ a.test ] # environment no_proxy\n');
  const own = renderConfig({ env: { ...BASE_ENV, SIDECAR_EGRESS_PROXY: 'user:sesame@p.test:3128' } });
  expect(own.stdout).toContain('  proxy: "********@p.test:3128" # environment SIDECAR_EGRESS_PROXY\n');
  expect(renderConfig({ env: BASE_ENV }).stdout).toContain('  httpProxy: null # default\n');
  expect(ambient.stdout + own.stdout).not.toContain('sesame');
});
