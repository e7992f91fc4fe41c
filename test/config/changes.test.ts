/** The changes between two configurations, and which of them need a restart. */
import { describe, expect, test } from 'vitest';
import { findChanges, type SettingChange } from '../../src/config/changes.ts';
import { loadConfig, type LoadedConfig } from '../../src/config/load/load.ts';
import { SETTINGS, settingOf } from '../../src/config/schema/schema.ts';
import type { SettingKey } from '../../src/config/schema/schema.ts';
import { ROUTE_SETTINGS } from '../../src/config/schema/schema-routes.ts';
import { BASE_ENV, scratchFile } from './base-env.ts';

type Env = Readonly<Record<string, string>>;

function load(yaml: string, env: Env = {}): LoadedConfig {
  const loaded = loadConfig({ env: { ...BASE_ENV, ...env }, file: scratchFile(yaml) });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded;
}

/** Without the path of the file, which differs from test to test. */
function changes(before: string, after: string, env: Env = {}): SettingChange[] {
  return findChanges(load(before, env), load(after, env)).map((change) => ({
    ...change,
    words: change.words?.replace(/file \S+(?=\))/, 'file'),
  }));
}

function keysOf(before: string, after: string): string[] {
  return changes(before, after).map(({ key, isLive: live }) => `${key} ${live ? 'now' : 'at a restart'}`);
}

describe('the top level', () => {
  test('reports no change for another spelling of the same settings', () => {
    expect(changes('throttle: { rate: 5, burst: 1 }', 'throttle:\n  rate: 5')).toEqual([]);
    expect(changes('listen: { allowedHosts: "a,b" }', 'listen: { allowedHosts: [a, b] }')).toEqual([]);
  });

  test('reports the old value, the new value and its origin', () => {
    expect(changes('throttle: { rate: 5 }', 'throttle: { rate: 50 }\nqueue: { max: 7 }')).toEqual([
      { key: 'throttle.rate', isLive: true, words: 'throttle.rate: 5 → 50 (file)' },
      { key: 'queue.max', isLive: true, words: 'queue.max: 1000 → 7 (file)' },
    ]);
    expect(changes('throttle: { rate: 5, maxRate: 9 }', '')).toEqual([
      { key: 'throttle.rate', isLive: true, words: 'throttle.rate: 5 → auto (default)' },
      { key: 'throttle.maxRate', isLive: true, words: 'throttle.maxRate: 9 → not set (default)' },
    ]);
  });

  test('reports no change of a setting that the environment overrides', () => {
    expect(changes('throttle: { rate: 5 }', 'throttle: { rate: 50 }', { SIDECAR_RATE: '7' })).toEqual([]);
  });

  test('reports only the key of a setting that needs a restart, since it may be a secret', () => {
    const one = 'auth: { extraHeaders: { x-key: the-first-of-the-keys } }';
    const found = changes(one, one.replace('first', 'second'));
    expect(found).toEqual([{ key: 'auth.extraHeaders', isLive: false, words: undefined }]);
  });
});

test('in a fleet a change of the rate needs a restart', () => {
  const fleet = 'fleet: { redisUrl: redis://127.0.0.1:1 }\n';
  const found = changes(`${fleet}throttle: { rate: 5 }`, `${fleet}throttle: { rate: 6, burst: 2, maxStreams: 3 }`);
  expect(found.map(({ key, isLive: live }) => [key, live])).toEqual([
    ['throttle.rate', false],
    ['throttle.burst', false],
    ['throttle.maxStreams', true],
  ]);
});

describe('routes and credentials', () => {
  const top = `credentials: { other: { clientId: c, clientSecret: s-of-the-other, scope: a } }
routes:
  - { name: a, pathPrefix: /a, credential: other }
`;
  const b = '  - { name: b, pathPrefix: /b, throttle: { rate: 5 } }\n';

  test('applies the live settings and the matching of a route', () => {
    const after = '  - { name: b, pathPrefix: /c, methods: GET, throttle: { rate: 9 }, queue: { max: 3 } }\n';
    expect(changes(top + b, top + after).map(({ words }) => words)).toEqual([
      'routes.b.pathPrefix: /b → /c (file)',
      'routes.b.throttle.rate: 5 → 9 (file)',
      'routes.b.methods: not set → GET (file)',
      'routes.b.queue.max: not set → 3 (file)',
    ]);
  });

  test('reports no change for another order of entries', () => {
    const first = top.replace('routes:\n', `routes:\n${b}`);
    expect(keysOf(top + b, first)).toEqual([]);
  });

  test.each([
    ['a route more', top, top + b, 'routes.b'],
    ['a route less', top + b, top, 'routes.b'],
    ['another name', top + b, top + b.replace('name: b', 'name: c'), 'routes.b'],
    ['another API', top + b, top + b.replace('/b,', '/b, baseUrl: https://b.example.com,'), 'routes.b.baseUrl'],
    ['another credential', top, top.replace('/a, credential: other', '/a'), 'routes.a.credential'],
    ['another group', top + b, top + b.replace('rate: 5', 'rate: 5, group: b2'), 'routes.b.throttle.group'],
    ['another secret', top, top.replace('s-of-the-other', 's-of-another'), 'credentials.other.clientSecret'],
  ])('%s needs a restart', (_, before, after, key) => {
    const found = changes(before, after).filter(({ isLive: live }) => !live);
    expect(found[0]).toEqual({ key, isLive: false, words: undefined });
  });
});

/** A valid value other than the default for each live setting. */
const OTHERS: Partial<Record<SettingKey, string>> = {
  'upstream.requestTimeoutMs': '1',
  'upstream.bodyIdleTimeoutMs': '2',
  'throttle.mode': 'observe',
  'throttle.rate': '3',
  'throttle.maxRate': '4',
  'throttle.assumeRefusals': 'false',
  'throttle.burst': '5',
  'throttle.maxInFlight': '6',
  'throttle.maxStreams': '7',
  'throttle.maxPauseMs': '8000',
  'throttle.limits': '[{"calls":5,"per":"1s"}]',
  'throttle.refusals': '[{"status":503}]',
  'throttle.hints': '{"X-Left":"remaining"}',
  'queue.max': '9',
  'queue.timeoutMs': '10',
  'request.deadlineMs': '11',
  'retry.attempts': '12',
  'retry.unsafeOn429': 'false',
  'retry.on401': 'false',
  'retry.trustIdempotencyKey': 'true',
  'retry.idempotencyKey.header': 'X-Request-Id',
  'retry.replayBufferBytes': '13',
  'retry.replayTotalBytes': '14',
  'response.cookies': 'pass',
  'log.level': 'fatal',
};

describe('live settings', () => {
  test('are exactly these', () => {
    const live = [...SETTINGS].filter(([, { isLive }]) => isLive).map(([key]) => key);
    expect(live.toSorted()).toEqual(Object.keys(OTHERS).toSorted());
    const ofRoutes = Object.entries(ROUTE_SETTINGS).filter(([, { isLive }]) => isLive);
    expect(ofRoutes.map(([key]) => key)).toEqual(['pathPrefix', 'stripPrefix', 'methods']);
  });

  test.each(Object.entries(OTHERS) as [SettingKey, string][])(
    '%s changes itself alone, and is no secret',
    (key, text) => {
      const { env, sensitive } = settingOf(key);
      const [before, after] = [load(''), load('', { [env]: text })];
      expect(sensitive).toBe(false);
      expect(findChanges(before, after).map((change) => change.key)).toEqual([key]);
      const changed = flat(after.config).filter((line) => !flat(before.config).includes(line));
      // A list of sections has several leaves.
      expect(new Set(changed.map((line) => line.split('.0.')[0]?.split('=')[0]))).toHaveLength(1);
    },
  );
});

/** `path=value` of every leaf. */
function flat(node: unknown, path = ''): string[] {
  if (typeof node !== 'object' || node === null || node instanceof URL) return [`${path}=${String(node)}`];
  return Object.entries(node).flatMap(([name, child]) => flat(child, `${path}.${name}`));
}
