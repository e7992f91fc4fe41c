/** The settings of a fleet: which Redis URLs are valid, and how they are shown. */
import { describe, expect, test } from 'vitest';
import { hasUnencryptedPassword, redisPassword } from '../../../../src/config/schema/formats/redis-url.ts';
import { renderConfig } from '../../../../src/commands/render-config.ts';
import { BASE_ENV, configOf, problemsOf, scratchFile } from '../../base-env.ts';

describe('a Redis URL', () => {
  test.each([
    'redis://host',
    'redis://host/',
    'redis://host:6380/15',
    'rediss://:sesame@host',
    'rediss://user:ses%25ame%40@redis.example.com:6379/0',
    'redis://user@host',
    'redis://[::1]:6379',
    'unix:///run/redis/redis.sock',
    'unix://user:sesame@/run/redis.sock?db=3',
  ])('is valid: %s', (url) => {
    expect(configOf({ SIDECAR_REDIS_URL: url }).fleet).toEqual({
      redisUrl: { kind: 'value', value: url },
      caFile: undefined,
      keyPrefix: 'bearer-sidecar',
      timeoutMs: 100,
    });
  });

  test.each([
    ['http://user:sesame@host', 'another scheme'],
    ['redis:host', 'no slashes'],
    ['redis://', 'no host'],
    ['redis://user:sesame@host/zero', 'a database that is no number'],
    ['redis://user:sesame@host/0/1', 'a path'],
    ['redis://user:sesame@host?db=1', 'a query'],
    ['redis://user:ses ame@host', 'a blank'],
    ['redis://user:100%sesame@host', 'a percent sign of its own'],
    ['redis://user:********@host', 'a mask'],
    ['unix://run/redis.sock', 'a path that is not absolute'],
    ['unix:///run/redis.sock?password=sesame', 'a query of another kind'],
  ])('is refused without showing its password: %s (%s)', (url) => {
    const lines = problemsOf({ SIDECAR_REDIS_URL: url });
    expect(lines).toEqual([expect.stringMatching(/^fleet\.redisUrl \(SIDECAR_REDIS_URL\): /)]);
    expect(lines.join()).not.toContain('sesame');
  });

  test('is shown without its password', () => {
    const env = { ...BASE_ENV, SIDECAR_REDIS_URL: 'rediss://user:sesame@host:6380/1' };
    expect(renderConfig({ env }).stdout).toContain('redisUrl: rediss://********@host:6380/1');
  });

  test('has a decoded password', () => {
    expect(redisPassword('redis://user:p%40ss%3Aword@host')).toBe('p@ss:word');
    expect(redisPassword('unix://:sesame@/run/redis.sock')).toBe('sesame');
    expect(['redis://host:6379', 'redis://user@host', 'redis://user:@host'].map(redisPassword)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('is unencrypted only over a network without TLS', () => {
    expect(hasUnencryptedPassword('redis://:sesame@redis.example.com')).toBe(true);
    const others = ['rediss://:sesame@host', 'redis://:sesame@localhost', 'redis://host', 'unix://:sesame@/run/r.sock'];
    expect(others.filter(hasUnencryptedPassword)).toEqual([]);
  });
});

describe('the file of a Redis URL', () => {
  test('replaces the URL', () => {
    const path = scratchFile('redis://:sesame@host\n');
    expect(configOf({ SIDECAR_REDIS_URL_FILE: path }).fleet?.redisUrl).toEqual({ kind: 'file', path });
  });

  test('without a URL is refused without showing its contents', () => {
    const path = scratchFile('sesame');
    const lines = problemsOf({ SIDECAR_REDIS_URL_FILE: path });
    expect(lines).toEqual([
      expect.stringMatching(
        /^fleet\.redisUrlFile \(SIDECAR_REDIS_URL_FILE\): the file .* holds no Redis URL: expected /,
      ),
    ]);
    expect(lines.join()).not.toContain('sesame');
  });

  test('together with the URL is refused', () => {
    const env = { SIDECAR_REDIS_URL: 'redis://host', SIDECAR_REDIS_URL_FILE: scratchFile('redis://host') };
    expect(problemsOf(env)).toEqual([
      'fleet.redisUrl (SIDECAR_REDIS_URL): set together with fleet.redisUrlFile (SIDECAR_REDIS_URL_FILE); expected only one of the two',
    ]);
  });
});

test('key prefix and timeout are bounded', () => {
  expect(configOf({ SIDECAR_REDIS_URL: 'redis://h', SIDECAR_FLEET_KEY_PREFIX: 'team_1.app:x' }).fleet?.keyPrefix).toBe(
    'team_1.app:x',
  );
  for (const prefix of ['a b', 'a*', 'x'.repeat(65)])
    expect(problemsOf({ SIDECAR_FLEET_KEY_PREFIX: prefix })).toEqual([expect.stringMatching(/^fleet\.keyPrefix /)]);
  for (const ms of ['0', '1001', '2.5'])
    expect(problemsOf({ SIDECAR_FLEET_TIMEOUT_MS: ms })).toEqual([expect.stringMatching(/^fleet\.timeoutMs /)]);
});

test('without a URL there is no fleet, even with other fleet settings', () => {
  expect(configOf({ SIDECAR_FLEET_KEY_PREFIX: 'a' }).fleet).toBeUndefined();
});
