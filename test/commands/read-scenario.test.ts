/** The file of `sandbox --scenario`: those that are shipped are valid, and each wrong key is named. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readScenario } from '../../src/commands/read-scenario.ts';
import { describeProblem, type ConfigProblem } from '../../src/config/load/problems.ts';
import { DEFAULT_SCENARIO } from '../../src/sandbox/scenario.ts';

const folder = mkdtempSync(join(tmpdir(), 'scenario-'));
afterAll(() => rmSync(folder, { recursive: true }));

function read(text: string) {
  const path = join(folder, 'scenario.yaml');
  writeFileSync(path, text);
  const problems: ConfigProblem[] = [];
  const scenario = readScenario(path, problems);
  return { scenario, problems: problems.map((problem) => describeProblem(problem).replace(folder, '')) };
}

test('shipped scenarios are valid', () => {
  const shipped = readdirSync('config/scenarios');
  expect(shipped).toHaveLength(3);
  for (const name of shipped) {
    const problems: ConfigProblem[] = [];
    readScenario(join('config/scenarios', name), problems);
    expect(problems).toEqual([]);
  }
});

test('keys that are left out keep their defaults, and an empty list of limits means none', () => {
  expect(read('seed: 7').scenario).toEqual({ ...DEFAULT_SCENARIO, seed: 7 });
  expect(read('limits: []').scenario.limits).toEqual([]);
});

test.each([
  ['', '--scenario: "/scenario.yaml": is empty'],
  ['- seed: 1', '--scenario: "/scenario.yaml": expected sections such as "latencyMs:" at the top level'],
  ['seed: [', '--scenario: "/scenario.yaml": line 1, column 8: not valid YAML or JSON (bad indent)'],
  ['sede: 1', 'sede: unknown key in the scenario; did you mean seed?'],
  ['seed: 1e300', /^seed: found 1e\+300; expected a whole number from 0 to/],
  ['seed: -1', /^seed: found -1; expected a whole number/],
  ['latencyMs: 50ms', /^latencyMs: found "50ms"; expected a whole number/],
  ['role: admin', 'role: found "admin"; expected one of seller, reader'],
  ['scopes: [all]', /^scopes: found "all"; entry "all": expected one of urn:/],
  ['limits: 5', 'limits: found 5; expected a list of sections'],
  ['limits: [5]', /^limits\[0\]/],
  ['limits: [{ calls: 5 }]', /^limits\[0\]: expected calls and per, or/],
  ['limits: [{ per: 1m }]', /^limits\[0\]: expected calls and per, or/],
  ['limits: [{ calls: 5, per: 1m, window: inFlight }]', /^limits\[0\]: expected calls and per, or/],
  [
    'limits: [{ calls: 5, per: 1m, window: rolling }]',
    /^limits\[0\]\.window: found "rolling"; expected one of sliding,/,
  ],
  ['limits: [{ calls: 5, per: 60 }]', /^limits\[0\]\.per: found 60; expected a whole number and s, m/],
  ['limits: [{}]', /^limits\[0\]: expected calls and per/],
  [
    'limits: [{ calls: 5, per: 1m }, { calls: 5, per: 1m, match: { paths: /x } }]',
    'limits[1].match.paths: unknown key in the scenario; did you mean limits[1].match.path?',
  ],
  [
    'limits: [{ calls: 5, per: 1m, match: { path: x } }]',
    /^limits\[0\]\.match\.path: found "x"; expected a path such as/,
  ],
  [
    'limits: [{ calls: 5, per: 1m, match: { methods: [post] } }]',
    /^limits\[0\]\.match\.methods: found "post"; entry "post": expected/,
  ],
  [
    'limits: [{ calls: 5, per: 1m, status: 200 }]',
    'limits[0].status: found 200; expected a whole number from 400 to 599',
  ],
  ['faults: [{ share: 0.5 }]', 'faults[0]: expected share, and status or breaks'],
  ['faults: [{ share: 2, status: 500 }]', /^faults\[0\]\.share: found 2; expected a number from 0 to 1/],
  [
    'faults: [{ share: 0.6, status: 500 }, { share: 0.6, breaks: cut }]',
    'faults[1]: the shares are more than 1 together',
  ],
])('%j is one problem that names the key and what is expected', (text, expected) => {
  const { problems } = read(text);
  expect(problems).toEqual([typeof expected === 'string' ? expected : expect.stringMatching(expected)]);
});
