/** Rules between settings, and the files that settings name. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load.ts';
import { BASE_ENV, configOf, problemsOf, scratchDirectory, scratchFile } from '../base-env.ts';

const HEADER = 'SIDECAR_LISTEN_REQUIRED_HEADER';
const root = rootCertificates[0] ?? '';

describe('http: URLs', () => {
  const hosts = ['localhost', '127.0.0.1', '127.8.9.1', '[::1]'];
  test.each(hosts)('are accepted for %s', (host) => {
    expect(
      configOf({ SIDECAR_BASE_URL: `http://${host}:1`, SIDECAR_AUTH_URL: `http://${host}:2` }).upstream.baseUrl.port,
    ).toBe('1');
  });
  test.each([
    'api.example.com',
    '10.0.0.1',
    'localhost.example.com',
    '127.example.com',
    'a.localhost',
    '[::2]',
    '128.0.0.1',
  ])('are refused for %s', (host) => {
    expect(problemsOf({ SIDECAR_BASE_URL: `http://${host}/`, SIDECAR_AUTH_URL: `http://${host}/` })).toEqual([
      expect.stringMatching(
        /^upstream\.baseUrl \(SIDECAR_BASE_URL\): http: is accepted for loopback hosts only.*SIDECAR_ALLOW_INSECURE_HTTP/,
      ),
      expect.stringMatching(/^auth\.url \(SIDECAR_AUTH_URL\): http: is accepted for loopback hosts only/),
    ]);
  });
  test('are accepted for every host with allowInsecureHttp', () => {
    const env = { SIDECAR_BASE_URL: 'http://api.example.com', SIDECAR_ALLOW_INSECURE_HTTP: 'true' };
    expect(configOf(env).upstream.baseUrl.protocol).toBe('http:');
  });
  test('an invalid allowInsecureHttp is the only problem', () => {
    const env = { SIDECAR_BASE_URL: 'http://api.example.com', SIDECAR_ALLOW_INSECURE_HTTP: '1' };
    expect(problemsOf(env)).toEqual([expect.stringMatching(/^allowInsecureHttp /)]);
  });
});

describe('audience and scope', () => {
  test('one is enough', () => {
    expect(configOf({ SIDECAR_AUDIENCE: '', SIDECAR_SCOPE: 'a' }).auth).toMatchObject({
      audience: [],
      scope: 'a',
    });
    expect(configOf({}).auth.scope).toBeUndefined();
  });
  test('none is required', () => {
    expect(configOf({ SIDECAR_AUDIENCE: '' }).auth).toMatchObject({ audience: [], scope: undefined, resource: [] });
  });
});

describe('an address that is not loopback', () => {
  const exposed = ['0.0.0.0:80', '[::]:80', '10.0.0.1:80', 'app:80', '[::ffff:127.0.0.1]:80'];
  test.each(exposed)('%s is refused', (address) => {
    expect(problemsOf({ SIDECAR_LISTEN: address })).toEqual([
      expect.stringMatching(
        /^listen\.address .*not loopback.*listen\.requiredHeader\.name.*listen\.allowUnauthenticatedNetwork/,
      ),
    ]);
  });
  test.each(exposed)('%s is accepted with a required field, or when allowed', (address) => {
    const header = { [`${HEADER}_NAME`]: 'X-Key', [`${HEADER}_VALUE`]: 'sesame' };
    expect(configOf({ SIDECAR_LISTEN: address, ...header }).listen.requiredHeader).toEqual({
      name: 'x-key',
      value: { kind: 'value', value: 'sesame' },
    });
    expect(
      configOf({ SIDECAR_LISTEN: address, SIDECAR_LISTEN_ALLOW_UNAUTHENTICATED_NETWORK: 'true' }).listen.address.kind,
    ).toBe('tcp');
  });
  test('needs nothing on the admin port', () => {
    expect(configOf({ SIDECAR_ADMIN_LISTEN: '0.0.0.0:19464' }).admin.address).toEqual({
      kind: 'tcp',
      host: '0.0.0.0',
      port: 19_464,
    });
  });
});

describe('the required field', () => {
  test.each([
    [{ [`${HEADER}_NAME`]: 'X-Key' }, 'set without its value'],
    [{ [`${HEADER}_VALUE`]: 'sesame' }, 'required with'],
    [
      { [`${HEADER}_NAME`]: 'X-Key', [`${HEADER}_VALUE`]: 'sesame', [`${HEADER}_VALUE_FILE`]: import.meta.filename },
      'expected one',
    ],
  ])('incomplete: %j', (env, reason) => {
    const [line] = problemsOf(env);
    expect(line).toMatch(/^listen\.requiredHeader\.name \(/);
    expect(line).toContain(reason);
    expect(line).not.toContain('sesame');
  });
  test('with its value in a file', () => {
    const path = scratchFile('sesame\n');
    const config = configOf({ [`${HEADER}_NAME`]: 'X-Key', [`${HEADER}_VALUE_FILE`]: path });
    expect(config.listen.requiredHeader?.value).toEqual({ kind: 'file', path });
  });
});

test('refuses a drain delay longer than the drain', () => {
  expect(problemsOf({ SIDECAR_DRAIN_DELAY_MS: '101', SIDECAR_DRAIN_MS: '100' })).toEqual([
    'shutdown.delayMs (SIDECAR_DRAIN_DELAY_MS): found 101; expected at most shutdown.drainMs (SIDECAR_DRAIN_MS), 100, of which it is a part',
  ]);
  expect(configOf({ SIDECAR_DRAIN_DELAY_MS: '100', SIDECAR_DRAIN_MS: '100' }).shutdown).toEqual({
    delayMs: 100,
    drainMs: 100,
  });
});

describe('throttle.maxRate', () => {
  test('below a configured rate is refused, naming both', () => {
    expect(problemsOf({ SIDECAR_THROTTLE_MAX_RATE: '9.5', SIDECAR_RATE: '10' })).toEqual([
      'throttle.maxRate (SIDECAR_THROTTLE_MAX_RATE): found 9.5; expected at least throttle.rate (SIDECAR_RATE), 10, or only one of the two',
    ]);
  });
  test.each(['10', 'auto'])('at 10 goes with a rate of %s', (rate) => {
    expect(configOf({ SIDECAR_THROTTLE_MAX_RATE: '10', SIDECAR_RATE: rate }).throttle.maxRate).toBe(10);
  });
});

test('default: the throttle has one replica and no state file', () => {
  expect(configOf().throttle).toMatchObject({ share: 1, maxRate: undefined, stateFile: undefined });
  const env = { SIDECAR_THROTTLE_SHARE: '4', SIDECAR_THROTTLE_STATE_FILE: '/state/learned.json' };
  expect(configOf(env).throttle).toMatchObject({ share: 4, stateFile: '/state/learned.json' });
  expect(problemsOf({ SIDECAR_THROTTLE_SHARE: '0' })).toHaveLength(1);
});

describe('throttle.share with a fleet', () => {
  test.each([
    ['SIDECAR_REDIS_URL', 'redis://127.0.0.1:6379', 'fleet.redisUrl'],
    ['SIDECAR_REDIS_URL_FILE', '/run/secrets/redis-url', 'fleet.redisUrlFile'],
  ])('is refused, naming both: %s', (variable, value, key) => {
    expect(problemsOf({ SIDECAR_THROTTLE_SHARE: '4', [variable]: value })).toContain(
      `throttle.share (SIDECAR_THROTTLE_SHARE): found 4 together with ${key} (${variable}), through which replicas already share the quota; expected 1, or only one of the two`,
    );
    const alone = loadConfig({ env: { ...BASE_ENV, SIDECAR_THROTTLE_SHARE: '1', [variable]: value } });
    const problems = alone.ok ? [] : alone.problems;
    expect(JSON.stringify(problems)).not.toContain('throttle.share');
  });

  test('is the part of declared limits of a replica that has not joined yet', () => {
    const limits = JSON.stringify([{ calls: 100, per: '1h' }]);
    const env = { SIDECAR_REDIS_URL: 'redis://127.0.0.1:6379', SIDECAR_THROTTLE_LIMITS: limits };
    expect(configOf({ ...env, SIDECAR_THROTTLE_SHARE: '4' }).throttle.share).toBe(4);
    expect(problemsOf({ ...env, SIDECAR_THROTTLE_SHARE: '101' }).join('\n')).toContain(
      'per-1h: found 100 calls; expected at least throttle.share (SIDECAR_THROTTLE_SHARE), 101',
    );
  });
});

test('proxy and admin cannot share an address, except with port 0', () => {
  expect(problemsOf({ SIDECAR_LISTEN: 'localhost:9000', SIDECAR_ADMIN_LISTEN: 'localhost:9000' })).toEqual([
    expect.stringMatching(/^admin\.address .*must differ from listen\.address/),
  ]);
  expect(configOf({ SIDECAR_LISTEN: 'localhost:0', SIDECAR_ADMIN_LISTEN: 'localhost:0' }).admin.address).toMatchObject({
    port: 0,
  });
});

describe('credential files', () => {
  const pairs = [
    ['auth.clientId', 'SIDECAR_CLIENT_ID'],
    ['auth.clientSecret', 'SIDECAR_CLIENT_SECRET'],
  ] as const;

  test.each(pairs)('%s and its file together are refused', (key, variable) => {
    expect(problemsOf({ [`${variable}_FILE`]: scratchFile('sesame') })).toEqual([
      `${key} (${variable}): set together with ${key}File (${variable}_FILE); expected only one of the two`,
    ]);
  });
  test.each(['sesame', 'sesame\n', 'sesame\r\n', 'sesame with blanks '])('contents %j are accepted', (contents) => {
    const path = scratchFile(contents);
    const config = configOf({ SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: path });
    expect(config.auth.method).toMatchObject({ secret: { kind: 'file', path } });
  });
  test.each([
    ['', 'must not be empty'],
    ['\n', 'must not be empty'],
    ['\r\n', 'must not be empty'],
    ['sesame\n\n', 'control characters'],
    ['sesame\r', 'control characters'],
    ['a\nsesame', 'control characters'],
  ])('contents %j are refused', (contents, reason) => {
    const lines = problemsOf({ SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: scratchFile(contents) });
    expect(lines).toEqual([
      expect.stringMatching(/^auth\.clientSecretFile \(SIDECAR_CLIENT_SECRET_FILE\): the file "/),
    ]);
    expect(lines[0]).toContain(reason);
    expect(lines[0]).not.toContain('sesame');
  });
  test('a colon in the file of the client id is refused', () => {
    const lines = problemsOf({ SIDECAR_CLIENT_ID: '', SIDECAR_CLIENT_ID_FILE: scratchFile('id:sesame') });
    expect(lines).toEqual([expect.stringMatching(/^auth\.clientIdFile .*must not hold a colon$/)]);
  });
  test('a missing file, a directory and a device are refused', () => {
    const reasons = ['/nowhere/secret', scratchDirectory(), '/dev/null'].map(
      (path) => problemsOf({ SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: path })[0],
    );
    expect(reasons[0]).toMatch(/"\/nowhere\/secret" does not exist$/);
    expect(reasons[1]).toMatch(/is not a regular file$/);
    expect(reasons[2]).toMatch(/is not a regular file$/);
  });
  test('an unreadable file is refused', () => {
    const path = join(scratchDirectory(), 'loop');
    symlinkSync(path, path);
    const [line] = problemsOf({ SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: path });
    expect(line).toMatch(/loop" cannot be read \(ELOOP\)$/);
  });
});

describe('certificate authorities', () => {
  test('SIDECAR_CA_FILE is for both, SIDECAR_AUTH_CA_FILE for the token endpoint only', () => {
    const [one, two] = [scratchFile(root), scratchFile(`# two\n${root}\n${root}`)];
    const shared = configOf({ SIDECAR_CA_FILE: one });
    expect([shared.upstream.caFile, shared.auth.caFile]).toEqual([one, one]);
    const split = configOf({ SIDECAR_CA_FILE: one, SIDECAR_AUTH_CA_FILE: two });
    expect([split.upstream.caFile, split.auth.caFile]).toEqual([one, two]);
    const alone = configOf({ SIDECAR_AUTH_CA_FILE: two });
    expect([alone.upstream.caFile, alone.auth.caFile]).toEqual([undefined, two]);
  });
  test.each([
    ['', 'holds no PEM certificate'],
    ['-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n', 'holds no PEM certificate'],
    ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', 'cannot be read, number 1'],
    [`${root}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`, 'cannot be read, number 2'],
  ])('contents %#', (contents, reason) => {
    const path = scratchFile(contents);
    expect(problemsOf({ SIDECAR_CA_FILE: path })).toEqual([expect.stringMatching(/^upstream\.caFile /)]);
    expect(problemsOf({ SIDECAR_AUTH_CA_FILE: path })[0]).toContain(reason);
  });
});
