/** The schema has the names of the contract, and the files in config/ agree with the schema. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load/load.ts';
import { SETTINGS, completeSettings } from '../../src/config/schema/schema.ts';
import { BASE_ENV, configOf, simple } from './base-env.ts';

const pathOf = (relative: string): string => fileURLToPath(new URL(`../../${relative}`, import.meta.url));

/** Variables that do not follow from their key. */
const NAMED: Readonly<Record<string, string>> = {
  'upstream.baseUrl': 'SIDECAR_BASE_URL',
  'auth.clientId': 'SIDECAR_CLIENT_ID',
  'auth.clientIdFile': 'SIDECAR_CLIENT_ID_FILE',
  'auth.clientSecret': 'SIDECAR_CLIENT_SECRET',
  'auth.clientSecretFile': 'SIDECAR_CLIENT_SECRET_FILE',
  'auth.audience': 'SIDECAR_AUDIENCE',
  'auth.scope': 'SIDECAR_SCOPE',
  'listen.address': 'SIDECAR_LISTEN',
  'admin.address': 'SIDECAR_ADMIN_LISTEN',
  'listen.allowedHosts': 'SIDECAR_ALLOWED_HOSTS',
  'listen.allowedOrigins': 'SIDECAR_ALLOWED_ORIGINS',
  'throttle.rate': 'SIDECAR_RATE',
  'throttle.burst': 'SIDECAR_BURST',
  'throttle.maxInFlight': 'SIDECAR_MAX_IN_FLIGHT',
  'request.deadlineMs': 'SIDECAR_DEADLINE_MS',
  'retry.replayBufferBytes': 'SIDECAR_REPLAY_BUFFER_BYTES',
  'retry.replayTotalBytes': 'SIDECAR_REPLAY_TOTAL_BYTES',
  'upstream.requestTimeoutMs': 'SIDECAR_REQUEST_TIMEOUT_MS',
  'upstream.bodyIdleTimeoutMs': 'SIDECAR_BODY_IDLE_TIMEOUT_MS',
  'upstream.websocket': 'SIDECAR_WEBSOCKET',
  'upstream.caFile': 'SIDECAR_CA_FILE',
  'fleet.redisUrl': 'SIDECAR_REDIS_URL',
  'fleet.redisUrlFile': 'SIDECAR_REDIS_URL_FILE',
  'shutdown.drainMs': 'SIDECAR_DRAIN_MS',
  'shutdown.delayMs': 'SIDECAR_DRAIN_DELAY_MS',
};

test('every variable is in the contract or follows from its key', () => {
  const derived = (key: string): string =>
    `SIDECAR_${key
      .replaceAll(/(?<=[a-z])(?=[A-Z]|\d)/g, '_')
      .replaceAll('.', '_')
      .toUpperCase()}`;
  for (const [key, { env }] of SETTINGS) expect(env).toBe(NAMED[key] ?? derived(key));
  expect(new Set([...SETTINGS.values()].map(({ env }) => env)).size).toBe(SETTINGS.size);
  expect([...SETTINGS.keys()]).toEqual(expect.arrayContaining(Object.keys(NAMED)));
});

test('every default passes its own format', () => {
  expect(() => completeSettings([])).not.toThrow();
});

test('every setting is documented in sentences', () => {
  for (const { doc } of SETTINGS.values()) expect(doc).toMatch(/^[A-Za-z].+\.$/);
});

test('default.yaml contains every setting with its default', () => {
  const file = pathOf('config/default.yaml');
  const loaded = loadConfig({ env: BASE_ENV, file });
  // A file that names throttle.maxInFlight limits the calls in flight; the default only bounds them.
  const given = configOf({ SIDECAR_MAX_IN_FLIGHT: '64' });
  expect(configOf().throttle).toEqual({ ...given.throttle, isMaxInFlightGiven: false });
  expect(loaded.ok && simple(loaded.config)).toEqual(given);
  const fromFile = loaded.ok ? [...loaded.effective.values()].filter(({ origin }) => origin === `file ${file}`) : [];
  const withDefault = [...SETTINGS.values()].filter(({ default: value }) => value !== null);
  expect(fromFile).toHaveLength(withDefault.length);
});

test('example-routes.yaml is valid except for its secret files', () => {
  const loaded = loadConfig({ env: {}, file: pathOf('config/example-routes.yaml') });
  expect(loaded.ok ? [] : loaded.problems.map(({ key }) => key)).toEqual([
    'auth.clientIdFile',
    'auth.clientSecretFile',
    'credentials.weather.clientIdFile',
    'credentials.weather.clientSecretFile',
  ]);
});

test('example.yaml is valid except for its secret files', () => {
  const loaded = loadConfig({ env: {}, file: pathOf('config/example.yaml') });
  expect(loaded.ok ? [] : loaded.problems.map(({ key }) => key)).toEqual([
    'auth.clientIdFile',
    'auth.clientSecretFile',
  ]);
});

test('the generated files are up to date', () => {
  const check = spawnSync(process.execPath, [pathOf('tools/config-reference.ts'), '--check'], { encoding: 'utf8' });
  expect(check).toMatchObject({ status: 0, stderr: '' });
});
