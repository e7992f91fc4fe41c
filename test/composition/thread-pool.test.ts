/** The number of threads for look-ups: enough for every name that the process knows, at the same time. */
import { describe, expect, it } from 'vitest';
import { countThreads } from '../../src/composition/thread-pool.ts';
import { settingOf, type SettingKey } from '../../src/config/schema/schema.ts';
import { configOf } from '../config/base-env.ts';

const LOOPBACK = { SIDECAR_BASE_URL: 'http://127.0.0.1:1', SIDECAR_AUTH_URL: 'http://[::1]:1' };

describe('the number of threads', () => {
  it.each([
    ['what libuv has anyway, where only addresses are configured', LOOPBACK, 4],
    ['two for each name, and for the receiver of spans', {}, 6],
    [
      'two for a name that API and authorization server share',
      { SIDECAR_AUTH_URL: 'https://api.example.com/login' },
      4,
    ],
    ['two for the token endpoint of an issuer', { SIDECAR_AUTH_URL: '', SIDECAR_AUTH_ISSUER: 'https://a.example' }, 8],
    ['two for Redis', { SIDECAR_REDIS_URL: 'rediss://redis.example.com' }, 8],
    ['two for each proxy', { SIDECAR_EGRESS_PROXY: 'http://a:1', SIDECAR_EGRESS_HTTP_PROXY: 'http://b:1' }, 10],
  ])('is %s', (_, env, threads) => {
    expect(countThreads(configOf(env))).toBe(threads);
  });
});

it.each<SettingKey>([
  'upstream.baseUrl',
  'auth.url',
  'auth.issuer',
  'egress.proxy',
  'egress.httpProxy',
  'fleet.redisUrl',
])('%s may bring a name that has no thread: a reload that changes it needs a restart', (key) => {
  expect(settingOf(key).isLive).toBe(false);
});
