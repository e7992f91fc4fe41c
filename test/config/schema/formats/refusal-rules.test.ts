/** `throttle.refusals` in its two forms, the JSON array of a variable and the list of a file, at the top level and in routes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { findChanges } from '../../../../src/config/changes.ts';
import { listDisplayedSettings } from '../../../../src/config/displayed-settings.ts';
import { loadConfig } from '../../../../src/config/load/load.ts';
import { BASE_ENV, configOf, problemsOf, scratchFile } from '../../base-env.ts';

const VARIABLE = 'SIDECAR_THROTTLE_REFUSALS';
const RULES = [
  { status: 503 },
  { status: 403, header: 'X-Limited: yes' },
  { status: 200, bodyContains: 'limit exceeded, try "later"' },
];

const rule = fc.record(
  {
    status: fc.integer({ min: 300, max: 599 }).filter((status) => status !== 401 && status !== 304),
    header: fc.constantFrom('X-Limited', 'x-limited', 'X-Limited: yes', 'X-Limited:a: b'),
    bodyContains: fc.string({ minLength: 1, maxLength: 1000 }),
  },
  { requiredKeys: ['status'] },
);

function fromFile(yaml: string) {
  return { file: scratchFile(yaml, 'config.yaml') };
}

test('is empty by default', () => {
  expect(configOf().throttle.refusals).toEqual([]);
});

test('every valid list is read from a variable and from a file as it is', () => {
  fc.assert(
    fc.property(fc.array(rule, { maxLength: 20 }), (rules) => {
      const text = JSON.stringify(rules);
      expect(configOf({ [VARIABLE]: text }).throttle.refusals).toEqual(rules);
      const { file } = fromFile(JSON.stringify({ throttle: { refusals: rules } }));
      expect(configOf({}, { file }).throttle.refusals).toEqual(rules);
    }),
    { numRuns: 30 },
  );
});

test('a file may be YAML', () => {
  const yaml = `throttle:
  refusals:
    - status: 503
    - { status: 403, header: "X-Limited: yes" }
    - status: 200
      bodyContains: limit exceeded, try "later"
`;
  expect(configOf({}, fromFile(yaml)).throttle.refusals).toEqual(RULES);
});

describe('an invalid value is one problem that names key, variable and what is expected', () => {
  test.each<[string, string]>([
    ['503', 'expected a list of { status, header, bodyContains }'],
    ['{"status":503}', 'expected a list of { status, header, bodyContains }'],
    ['[{"status":503}', 'expected a list of { status, header, bodyContains }'],
    ['[503]', 'rule 1: expected a section with status, header and bodyContains'],
    ['[null]', 'rule 1: expected a section with status, header and bodyContains'],
    ['[[]]', 'rule 1: expected a section with status, header and bodyContains'],
    ['[{}]', 'rule 1: status: expected a whole number from 200 to 599'],
    ['[{"status":"503"}]', 'rule 1: status: expected a whole number from 200 to 599, without quotes'],
    ['[{"status":503.5}]', 'rule 1: status: expected a whole number from 200 to 599'],
    ['[{"status":100}]', 'rule 1: status: expected a whole number from 200 to 599'],
    ['[{"status":600}]', 'rule 1: status: expected a whole number from 200 to 599'],
    ['[{"status":401}]', 'rule 1: status: 401 means that the token was refused'],
    ['[{"status":200}]', 'rule 1: status: 200 is a success; expected bodyContains with it'],
    ['[{"status":202,"header":"X-Limited"}]', 'rule 1: status: 202 is a success; expected bodyContains with it'],
    ['[{"status":204,"bodyContains":"x"}]', 'rule 1: bodyContains: a response of 204 has no body'],
    ['[{"status":503,"body":"x"}]', 'rule 1: unknown member "body"; expected status, header, bodyContains'],
    ['[{"status":503,"bodyContains":""}]', 'rule 1: bodyContains: expected a text of 1 to 1000 characters'],
    ['[{"status":503,"bodyContains":7}]', 'rule 1: bodyContains: expected a text of 1 to 1000 characters, in quotes'],
    [`[{"status":503,"bodyContains":"${'x'.repeat(1001)}"}]`, 'rule 1: bodyContains: expected a text of 1 to 1000'],
    ['[{"status":503,"header":""}]', 'rule 1: header: expected a field name such as X-Limited'],
    ['[{"status":503,"header":"X Limited"}]', 'rule 1: header: expected a field name such as X-Limited'],
    ['[{"status":503,"header":"X-Limited:"}]', 'rule 1: header: expected a field name such as X-Limited'],
    ['[{"status":503,"header":"X-Limited: é"}]', 'rule 1: header: expected a field name such as X-Limited'],
    ['[{"status":503,"header":true}]', 'rule 1: header: expected a field name such as X-Limited'],
    [JSON.stringify(Array(21).fill({ status: 503 })), 'expected at most 20 rules'],
  ])('%s', (text, fault) => {
    const [problem, ...more] = problemsOf({ [VARIABLE]: text });
    expect(problem).toMatch(/^throttle\.refusals \(SIDECAR_THROTTLE_REFUSALS\): found /);
    expect(problem).toContain(fault);
    expect(more).toEqual([]);
  });

  test('every rule that is wrong is named', () => {
    const [problem] = problemsOf({ [VARIABLE]: '[{"status":401},{"status":503},{"status":200}]' });
    expect(problem).toMatch(/rule 1: status: 401 .*; rule 3: status: 200 is a success/);
  });
});

describe('routes', () => {
  const yaml = (own: string) =>
    `throttle: { refusals: [{ status: 503 }] }\nroutes:\n  - { name: a, pathPrefix: /a }\n  - { name: b, pathPrefix: /b, throttle: { refusals: ${own} } }\n`;

  test('inherit the list, or have their own', () => {
    const loaded = loadConfig({ env: BASE_ENV, ...fromFile(yaml('[{ status: 420 }]')) });
    if (!loaded.ok) throw new Error('refused');
    expect(loaded.config.routes.map(({ throttle }) => throttle.refusals)).toEqual([
      [{ status: 503 }],
      [{ status: 503 }],
      [{ status: 420 }],
    ]);
  });

  test('a fault names the key within the route', () => {
    expect(problemsOf({}, fromFile(yaml('[{ status: 401 }]')))).toEqual([
      expect.stringMatching(/^routes\[1\]\.throttle\.refusals: found a list in .*; rule 1: status: 401/),
    ]);
  });

  test.each<[string, number]>([
    ['[{ status: 503 }]', 0],
    ['[{ status: 420 }]', 1],
  ])('of one group need equal lists: %s has %i problems', (own, problems) => {
    const file = scratchFile(
      `throttle: { refusals: [{ status: 503 }] }\nroutes:\n  - { name: a, pathPrefix: /a, throttle: { group: g } }\n  - { name: b, pathPrefix: /b, throttle: { group: g, refusals: ${own} } }\n`,
      'config.yaml',
    );
    const loaded = loadConfig({ env: BASE_ENV, file });
    expect(loaded.ok ? [] : loaded.problems.map(({ key }) => key)).toEqual(
      Array(problems).fill('routes[1].throttle.refusals'),
    );
  });
});

test('a change is applied without a restart, and described', () => {
  const before = loadConfig({ env: BASE_ENV });
  const after = loadConfig({ env: { ...BASE_ENV, [VARIABLE]: '[{"status":503}]' } });
  if (!before.ok || !after.ok) throw new Error('refused');
  expect(findChanges(before, after)).toEqual([
    {
      key: 'throttle.refusals',
      isLive: true,
      words: `throttle.refusals: none → [{"status":503}] (environment ${VARIABLE})`,
    },
  ]);
});

test('the shown value is valid as a value again', () => {
  const loaded = loadConfig({ env: { ...BASE_ENV, [VARIABLE]: JSON.stringify(RULES) } });
  if (!loaded.ok) throw new Error('refused');
  const shown = listDisplayedSettings(loaded).find(({ key }) => key === 'throttle.refusals');
  expect(parse(shown?.value ?? '')).toEqual(RULES);
});
