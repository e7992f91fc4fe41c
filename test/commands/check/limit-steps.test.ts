/** What check says of declared limits: what each means, and which one can never hold back a call. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load.ts';
import { listDeclaredLimits } from '../../../src/commands/check/limit-steps.ts';
import { DeclaredLimits } from '../../../src/throttle/declared/declared-limits.ts';
import { BASE_ENV, configOf, scratchFile } from '../../config/base-env.ts';

const NOW = Date.UTC(2026, 10, 24, 15);

function check(limits: readonly object[], env: Record<string, string> = {}) {
  return listDeclaredLimits(configOf({ SIDECAR_THROTTLE_LIMITS: JSON.stringify(limits), ...env }), NOW);
}

test('each limit is one line, with the end of its day or month', () => {
  expect(
    check([
      { calls: 350, per: '10s' },
      { calls: 10_000, per: '1d', window: 'calendar', timeZone: 'Europe/Berlin', spread: 'even', reserve: 500 },
      { calls: 90_000, per: '1mo', window: 'calendar', timeZone: 'America/New_York', countsRefused: false },
      { calls: 20_000, per: '1h', window: 'calendar', name: 'hour' },
    ]).map(({ outcome, target, detail }) => [outcome, target, detail]),
  ).toEqual([
    ['ok', 'per-10s', '350 calls per 10s, sliding'],
    [
      'ok',
      'per-1d-calendar',
      '10,000 calls per 1d, calendar in Europe/Berlin; this window ends at 2026-11-24T23:00:00.000Z; spread evenly; 500 kept for x-sidecar-priority: high',
    ],
    [
      'ok',
      'per-1mo-calendar',
      '90,000 calls per 1mo, calendar in America/New_York; this window ends at 2026-12-01T05:00:00.000Z; refused calls do not count',
    ],
    ['ok', 'hour', '20,000 calls per 1h, calendar'],
  ]);
  expect(check([])).toEqual([]);
});

test('a limit of operations says which calls it counts, and is idle only beside a tighter one of the same calls', () => {
  const match = { methods: ['POST'], path: '/policies/*' };
  const steps = check([
    { name: 'all', calls: 20, per: '1s' },
    { name: 'posts', calls: 3, per: '1s', match },
    { name: 'each', calls: 3, per: '1s', match, each: true },
    { name: 'wide', calls: 25, per: '1s', match },
  ]);
  expect(steps.map(({ target, outcome }) => `${target} ${outcome}`)).toEqual([
    'all ok',
    'posts ok',
    'each warn',
    'wide warn',
  ]);
  expect(steps[1]?.detail).toBe('3 calls per 1s to POST /policies/*, sliding');
  expect(steps[2]?.detail).toContain('each value of * has a count of its own');
});

test('the limits of a group are listed once, under its name', () => {
  const limits = '[{ calls: 5, per: 1s }]';
  const file = scratchFile(
    `routes:\n  - { name: a, baseUrl: https://a.example.com, pathPrefix: /a, throttle: { group: g, limits: ${limits} } }\n  - { name: b, baseUrl: https://a.example.com, pathPrefix: /b, throttle: { group: g, limits: ${limits} } }\n`,
    'config.yaml',
  );
  const loaded = loadConfig({ env: { ...BASE_ENV, SIDECAR_BASE_URL: undefined }, file });
  if (!loaded.ok) throw new Error('refused');
  expect(listDeclaredLimits(loaded.config, NOW).map(({ target }) => target)).toEqual(['per-1s g']);
});

describe('a limit that never holds back a call', () => {
  test.each<[string, Record<string, string>, string | undefined]>([
    ['throttle.rate is lower', { SIDECAR_RATE: '2' }, 'throttle.rate allows 121 calls'],
    ['a burst is saved up', { SIDECAR_RATE: '2', SIDECAR_BURST: '900' }, undefined],
    ['throttle.rate is higher', { SIDECAR_RATE: '20' }, undefined],
    ['throttle.maxRate is lower', { SIDECAR_THROTTLE_MAX_RATE: '2' }, 'throttle.maxRate allows 121 calls'],
  ])('is warned of where %s', (_, env, advice) => {
    const [step] = check([{ calls: 1000, per: '1m' }], env);
    expect(step?.outcome).toBe(advice === undefined ? 'ok' : 'warn');
    if (advice !== undefined) expect(step?.advice).toContain(advice);
  });

  test('is warned of only where no order of calls reaches it', () => {
    const limit = fc.record({
      calls: fc.integer({ min: 1, max: 12 }),
      per: fc.constantFrom('1s', '2s', '5s'),
      window: fc.constantFrom('sliding', 'calendar'),
    });
    const pauses = fc.array(fc.integer({ min: 0, max: 1500 }), { minLength: 20, maxLength: 60 });
    fc.assert(
      fc.property(limit, limit, pauses, (one, other, waits) => {
        const limits = [
          { ...one, name: 'one' },
          { ...other, name: 'other' },
        ];
        const idle = new Set(check(limits).flatMap(({ outcome, target }) => (outcome === 'warn' ? [target] : [])));
        fc.pre(idle.size === 1);
        const all = configOf({ SIDECAR_THROTTLE_LIMITS: JSON.stringify(limits) }).routes[0].throttle.limits;
        const create = (some: typeof all) => new DeclaredLimits({ limits: some, toEpoch: (now) => NOW + now });
        const [both, binding] = [create(all), create(all.filter(({ name }) => !idle.has(name)))];
        let now = 0;
        for (const wait of waits) {
          now += wait;
          const isOpen = binding.forAll.isOpen(now, false);
          expect(both.forAll.isOpen(now, false)).toBe(isOpen);
          if (!isOpen) continue;
          both.forAll.take(now);
          binding.forAll.take(now);
        }
      }),
      { numRuns: 200 },
    );
  });
});
