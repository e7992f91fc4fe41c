/** `throttle.limits` in its two forms, the JSON array of a variable and the list of a file, at the top level and in routes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { findChanges } from '../../../../src/config/changes.ts';
import { listDisplayedSettings } from '../../../../src/config/displayed-settings.ts';
import { loadConfig } from '../../../../src/config/load/load.ts';
import { createLimitWindow } from '../../../../src/throttle/declared/limit-window.ts';
import { BASE_ENV, configOf, problemsOf, scratchFile } from '../../base-env.ts';

const VARIABLE = 'SIDECAR_THROTTLE_LIMITS';
const DEFAULTS = { window: 'sliding', timeZone: 'UTC', countsRefused: true, spread: 'none', reserve: 0 };
const GRAPH = [
  { ...DEFAULTS, name: 'per-10s', calls: 350, per: '10s' },
  { ...DEFAULTS, name: 'hour', calls: 10_000, per: '1h', reserve: 500 },
];

const windowMembers = fc.oneof(
  fc.record({ per: fc.constantFrom('1s', '90s', '7m', '24h', '31d', '2678400s', '1mo') }),
  fc.record({
    per: fc.constantFrom('1s', '15m', '60m', '1h', '3600s'),
    window: fc.constant('calendar'),
  }),
  fc.record({
    per: fc.constantFrom('1d', '1mo'),
    window: fc.constant('calendar'),
    timeZone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu'),
  }),
);
const limit = fc
  .tuple(
    windowMembers,
    fc.integer({ min: 1, max: 1_000_000_000 }),
    fc.record(
      {
        reservedShare: fc.double({ min: 0, max: 0.999, noNaN: true }),
        countsRefused: fc.boolean(),
        spread: fc.constantFrom('none', 'even'),
      },
      { requiredKeys: [] },
    ),
  )
  .map(([window, calls, { reservedShare, ...more }]) => {
    const reserve = reservedShare === undefined ? {} : { reserve: Math.floor(calls * reservedShare) };
    return { calls, ...window, ...reserve, ...more };
  });
const limits = fc.uniqueArray(limit, {
  maxLength: 16,
  selector: (entry) => `${entry.per} ${String('window' in entry)}`,
});

function fromFile(yaml: string) {
  return { file: scratchFile(yaml, 'config.yaml') };
}

test('is empty by default', () => {
  expect(configOf().throttle.limits).toEqual([]);
});

test.each([
  ['second', '1s'],
  ['minute', '1m'],
  ['hour', '1h'],
  ['day', '1d'],
  ['month', '1mo'],
])('per %s, as partners write it, is per %s', (written, per) => {
  const yaml = `throttle: { limits: [{ calls: 10, per: ${written} }] }`;
  expect(configOf({}, fromFile(yaml)).throttle.limits).toEqual([{ ...DEFAULTS, name: `per-${per}`, calls: 10, per }]);
});

test('every valid list is read from a variable and from a file, with the defaults, and can be counted', () => {
  fc.assert(
    fc.property(limits, (given) => {
      const whole = given.map((entry) => ({
        ...DEFAULTS,
        name: `per-${entry.per}${'window' in entry ? '-calendar' : ''}`,
        ...entry,
      }));
      const { limits: read } = configOf({ [VARIABLE]: JSON.stringify(given) }).throttle;
      expect(read).toEqual(whole);
      const { file } = fromFile(JSON.stringify({ throttle: { limits: given } }));
      expect(configOf({}, { file }).throttle.limits).toEqual(whole);
      for (const entry of read) expect(createLimitWindow(entry).lengthMs).toBeGreaterThan(0);
    }),
    { numRuns: 30 },
  );
});

test('a file may be YAML', () => {
  const yaml = `throttle:
  limits:
    - { calls: 350, per: 10s }
    - name: hour
      calls: 10000
      per: 1h
      reserve: 500
`;
  expect(configOf({}, fromFile(yaml)).throttle.limits).toEqual(GRAPH);
});

test('a match is read from a variable and from a file, with its methods in capitals', () => {
  const match = { methods: ['POST', 'PUT'], path: '/tenants/*' };
  const [read] = configOf({
    [VARIABLE]: '[{"calls":3,"per":"1s","match":{"methods":["post","Put"],"path":"/tenants/*"},"each":true}]',
  }).throttle.limits;
  expect(read).toMatchObject({ match, each: true });
  const yaml = `throttle:
  limits:
    - { calls: 3, per: 1s, match: { methods: [post, Put], path: /tenants/* }, each: true }
`;
  expect(configOf({}, fromFile(yaml)).throttle.limits).toEqual([read]);
});

describe('an invalid value is one problem that names key, variable, entry and what is expected', () => {
  const list = 'expected a list of { name, calls, per, window, timeZone, countsRefused, spread, reserve, match, each }';
  const of = (more: object) => JSON.stringify([{ calls: 10, per: '1d', ...more }]);
  const window = (per: string) => `limit 1 (per-${per}-calendar): window: ${per} has no calendar; expected a length`;
  const zone = 'timeZone: of a calendar day or month only';
  test.each<[string, string]>([
    ['350 per 10s', list],
    ['{"calls":1,"per":"1s"}', list],
    ['[{"calls":1,"per":"1s"}', list],
    ['[350]', 'limit 1: expected a section with calls and per'],
    ['[null]', 'limit 1: expected a section with calls and per'],
    ['[[]]', 'limit 1: expected a section with calls and per'],
    [of({ limit: 1 }), 'unknown member "limit"; expected name, calls, per, window'],
    ['[{"per":"1s"}]', 'calls: expected a whole number from 1 to 1000000000'],
    [of({ calls: '10' }), 'calls: expected a whole number from 1 to 1000000000, without quotes'],
    [of({ calls: 0 }), 'calls: expected'],
    [of({ calls: 1.5 }), 'calls: expected'],
    [of({ calls: 1_000_000_001 }), 'calls: expected'],
    [
      '[{"calls":1}]',
      'per: expected a whole number and s, m, h or d, such as 10s, at most 31d; 1mo; or second, minute, hour, day or month',
    ],
    ...['', '10', '10 s', '0s', '01s', '1.5h', '-1s', '32d', '745h', '9999999d', '1w', '2mo', '10S'].map(
      (per): [string, string] => [of({ per }), 'per: expected'],
    ),
    [of({ per: 10 }), 'per: expected'],
    [of({ window: 'fixed' }), 'limit 1 (per-1d): window: expected sliding or calendar'],
    ...['7s', '7m', '90m', '2h', '24h', '2d'].map((per): [string, string] => [
      of({ per, window: 'calendar' }),
      window(per),
    ]),
    [of({ timeZone: 'Europe/Berlin' }), zone],
    [of({ per: '1h', window: 'calendar', timeZone: 'Europe/Berlin' }), zone],
    ...['Europe/Bonn', '+01:00', '', 'Mars'].map((timeZone): [string, string] => [
      of({ window: 'calendar', timeZone }),
      'timeZone: expected an IANA name such as Europe/Berlin',
    ]),
    [of({ window: 'calendar', timeZone: null }), 'timeZone: expected an IANA name such as Europe/Berlin'],
    ...['', 'A', 'a_b', 'x'.repeat(33), 7].map((name): [string, string] => [
      of({ name }),
      'limit 1: name: expected 1 to 32 small letters, digits and hyphens',
    ]),
    [of({ countsRefused: 'true' }), 'countsRefused: expected true or false, without quotes'],
    [of({ spread: true }), 'spread: expected none or even'],
    [of({ reserve: 10 }), 'reserve: expected a whole number from 0 to 9, below calls'],
    [of({ reserve: -1 }), 'reserve: expected'],
    [of({ reserve: '1' }), 'reserve: expected a whole number from 0 to 9, below calls, without quotes'],
    ...[{}, [], 'POST /a', { method: ['GET'] }, { path: '/a', query: 'x' }].map((match): [string, string] => [
      of({ match }),
      `limit 1 (per-1d): match: found ${JSON.stringify(match)}; expected methods, path or both`,
    ]),
    ...[[], 'POST', ['PSOT'], ['GET', 'CONNECT'], [7]].map((methods): [string, string] => [
      of({ match: { methods } }),
      `limit 1 (per-1d): match.methods: found ${JSON.stringify(Array.isArray(methods) ? (methods.at(-1) ?? []) : methods)}; expected a list of methods`,
    ]),
    ...['a', '/a/', '/a/**', '/a*', '/a?b', '/a#b', '/a/../b', '/a/./b', '/%61', '//a', '', 7].map(
      (path): [string, string] => [
        of({ match: { path } }),
        `limit 1 (per-1d): match.path: found ${JSON.stringify(path)}; expected a path such as /policies or /tenants/*`,
      ],
    ),
    [of({ each: 'yes', match: { path: '/*' } }), 'each: expected true or false, without quotes'],
    [of({ each: true }), 'each: expected match with a path that has a segment *, such as /tenants/*; found none'],
    [of({ each: true, match: { path: '/tenants' } }), 'such as /tenants/*; found "/tenants"'],
    [JSON.stringify(Array(17).fill({ calls: 1, per: '1s' })), 'expected at most 16 limits'],
    ['[{"calls":1,"per":"1s"},{"calls":1,"per":"1s"}]', 'limit 2 (per-1s): name: an earlier limit has it too'],
  ])('%s', (text, fault) => {
    const [problem, ...more] = problemsOf({ [VARIABLE]: text });
    expect(problem).toMatch(/^throttle\.limits \(SIDECAR_THROTTLE_LIMITS\): found /);
    expect(problem).toContain(fault);
    expect(more).toEqual([]);
  });

  test('every entry that is wrong is named', () => {
    const [problem] = problemsOf({
      [VARIABLE]: '[{"calls":0,"per":"1s"},{"calls":1,"per":"1s"},{"name":"x","calls":1,"per":"1y"}]',
    });
    expect(problem).toMatch(/limit 1 \(per-1s\): calls: .*; limit 3 \(x\): per: expected/);
  });
});

describe('routes', () => {
  const yaml = (own: string, group = '') =>
    `throttle: { limits: [{ calls: 5, per: 1s }] }\nroutes:\n  - { name: a, pathPrefix: /a, throttle: { ${group} } }\n  - { name: b, pathPrefix: /b, throttle: { ${group} limits: ${own} } }\n`;

  test('inherit the list, or have their own', () => {
    const loaded = loadConfig({ env: BASE_ENV, ...fromFile(yaml('[{ calls: 7, per: 1d }]')) });
    if (!loaded.ok) throw new Error('refused');
    expect(loaded.config.routes.map(({ throttle }) => throttle.limits.map(({ name }) => name))).toEqual([
      ['per-1s'],
      ['per-1s'],
      ['per-1d'],
    ]);
  });

  test('a fault names the key within the route', () => {
    expect(problemsOf({}, fromFile(yaml('[{ calls: 7 }]')))).toEqual([
      expect.stringMatching(/^routes\[1\]\.throttle\.limits: found a list in .*; limit 1.*: per: expected/),
    ]);
  });

  test.each<[string, number]>([
    ['[{ calls: 5, per: 1s }]', 0],
    ['[{ calls: 5, per: 1s, window: sliding, reserve: 0 }]', 0],
    ['[{ calls: 5, per: 1s, reserve: 1 }]', 1],
  ])('of one group need equal lists, with the defaults: %s has %i problems', (own, problems) => {
    const loaded = loadConfig({ env: BASE_ENV, ...fromFile(yaml(own, 'group: g,')) });
    expect(loaded.ok ? [] : loaded.problems.map(({ key }) => key)).toEqual(
      Array(problems).fill('routes[1].throttle.limits'),
    );
  });
});

test('a change is applied without a restart, and described', () => {
  const before = loadConfig({ env: BASE_ENV });
  const after = loadConfig({ env: { ...BASE_ENV, [VARIABLE]: '[{"calls":350,"per":"10s"}]' } });
  if (!before.ok || !after.ok) throw new Error('refused');
  expect(findChanges(before, after)).toEqual([
    {
      key: 'throttle.limits',
      isLive: true,
      words: `throttle.limits: none → ${JSON.stringify(after.config.routes[0].throttle.limits)} (environment ${VARIABLE})`,
    },
  ]);
});

test('the shown value is valid as a value again', () => {
  const loaded = loadConfig({ env: { ...BASE_ENV, [VARIABLE]: JSON.stringify(GRAPH) } });
  if (!loaded.ok) throw new Error('refused');
  const shown = listDisplayedSettings(loaded).find(({ key }) => key === 'throttle.limits')?.value ?? '';
  expect(parse(shown)).toEqual(GRAPH);
  expect(configOf({ [VARIABLE]: shown }).throttle.limits).toEqual(GRAPH);
});
