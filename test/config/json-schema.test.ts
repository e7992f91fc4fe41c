/** The JSON Schema of a configuration file, with the validator that editors use: it accepts what the program accepts. */
import { readFileSync, writeFileSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load/load.ts';
import { locateInPackage } from '../../src/platform/asset.ts';
import { listSections } from '../../src/config/load/sections.ts';
import { LIST_KEYS } from '../../src/config/schema/schema-routes.ts';
import { JSON_SCHEMA_PATH, SETTINGS } from '../../src/config/schema/schema.ts';
import { blocksOf, PAGES, ROOT } from '../docs/pages.ts';
import { roundsOf } from '../support/rounds.ts';
import { BASE_ENV, scratchDirectory, scratchFile } from './base-env.ts';

const schema = JSON.parse(readFileSync(join(ROOT, JSON_SCHEMA_PATH), 'utf8')) as object;
const validate = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true }).compile(schema);

const faultsOf = (yaml: string): string[] =>
  validate(parse(yaml))
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message ?? ''}`);

const TOP_LEVEL = new Set<string>([...listSections(SETTINGS.keys()), 'allowInsecureHttp', ...LIST_KEYS]);

/** A YAML or JSON document of which every key is one of a configuration file. */
function isConfiguration(text: string): boolean {
  if (text.includes('…') || text.includes('...')) return false;
  const tree = parseOrUndefined(text);
  const keys = typeof tree === 'object' && tree !== null && !Array.isArray(tree) ? Object.keys(tree) : [];
  return keys.length > 0 && keys.every((key) => TOP_LEVEL.has(key));
}

function parseOrUndefined(text: string): unknown {
  try {
    return parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** `a.b` and a value as `{ a: { b: value } }`. */
function treeOf(key: string, value: unknown): unknown {
  return key.split('.').reduceRight<unknown>((below, name) => ({ [name]: below }), value);
}

/** Whether the program accepts a file, with what it leaves out from the environment. */
function isAccepted(text: string, file = scratchFile(text)): boolean {
  const given = JSON.stringify(parseOrUndefined(text));
  const env = Object.entries(BASE_ENV).filter(([variable]) => {
    const key = [...SETTINGS].find(([, { env }]) => env === variable)?.[0] ?? '';
    return !given.includes(`"${key.split('.').at(-1) ?? ''}`);
  });
  return loadConfig({ env: Object.fromEntries(env), file }).ok;
}

const DOCUMENTED = PAGES.flatMap(blocksOf).filter(
  ({ language, text }) => ['yaml', 'json', ''].includes(language) && isConfiguration(text),
);

describe('every documented configuration is valid', () => {
  test('there are some', () => expect(DOCUMENTED.length).toBeGreaterThan(5));
  test.each(DOCUMENTED)('$page:$line', ({ text }) => expect(faultsOf(text)).toEqual([]));
  test.each(globSync('config/*.yaml', { cwd: ROOT }))('%s', (path) => {
    expect(faultsOf(readFileSync(join(ROOT, path), 'utf8'))).toEqual([]);
  });
});

test('every setting is in it; an empty file and one that names the schema are valid', () => {
  for (const key of SETTINGS.keys()) expect(faultsOf(JSON.stringify(treeOf(key, null))), key).toEqual([]);
  expect(faultsOf('')).toEqual([]);
  expect(faultsOf('$schema: ./schema.json\nthrottle: { rate: 3 }')).toEqual([]);
});

test('its location is that of the package', () => {
  expect(fileURLToPath(locateInPackage(JSON_SCHEMA_PATH) ?? '')).toBe(join(ROOT, JSON_SCHEMA_PATH));
});

/** One example of each class of mistake that the program reports and the schema can see. */
const REFUSED = [
  ['an unknown key', 'throttle: { rte: 5 }'],
  ['an unknown section', 'throtle: { rate: 5 }'],
  ['a key in the wrong section', 'upstream: { rate: 5 }'],
  ['a dotted key', 'throttle.rate: 5'],
  ['a value in place of a section', 'throttle: 5'],
  ['a section in place of a value', 'throttle: { rate: { a: 1 } }'],
  ['a number in quotes', 'throttle: { burst: "5" }'],
  ['a rate in quotes', 'throttle: { rate: "5" }'],
  ['a decimal for a whole number', 'throttle: { burst: 1.5 }'],
  ['a number out of range', 'throttle: { burst: 0 }'],
  ['a rate of 0', 'throttle: { rate: 0 }'],
  ['a share above 1', 'log: { sample: 1.1 }'],
  ['a boolean in quotes', 'upstream: { websocket: "true" }'],
  ['a word for a boolean', 'upstream: { websocket: yes }'],
  ['a word of another set', 'log: { level: loud }'],
  ['a number for a text', 'auth: { scope: 5 }'],
  ['an empty text', 'auth: { clientId: "" }'],
  ['a control character', 'auth: { clientSecret: "a\\u0001" }'],
  ['a URL of another scheme', 'upstream: { baseUrl: "ftp://a.example" }'],
  ['a URL with a query', 'upstream: { baseUrl: "https://a.example/?a" }'],
  ['a listen address without a port', 'listen: { address: localhost }'],
  ['a name that is no field name', 'listen: { requiredHeader: { name: "a b" } }'],
  ['an empty list', 'listen: { allowedHosts: [] }'],
  ['a list of numbers', 'listen: { allowedHosts: [1] }'],
  ['an entry twice', 'auth: { audience: [a, a] }'],
  ['a text map with a number', 'auth: { extraParameters: { a: 1 } }'],
  ['a meaning that does not exist', 'throttle: { hints: { X-A: nothing } }'],
  ['a refusal without a status', 'throttle: { refusals: [{ header: X-A }] }'],
  ['a refusal of 401', 'throttle: { refusals: [{ status: 401 }] }'],
  ['a refusal by success without a text', 'throttle: { refusals: [{ status: 200 }] }'],
  ['a refusal with a text where there is no body', 'throttle: { refusals: [{ status: 304, bodyContains: a }] }'],
  ['an unknown member of a refusal', 'throttle: { refusals: [{ status: 503, body: a }] }'],
  ['an allow rule without a path', 'listen: { allow: [{ methods: [GET] }] }'],
  ['a route without a name', 'routes: [{ pathPrefix: /a }]'],
  ['a route without a prefix', 'routes: [{ name: a }]'],
  ['a route with the name of the top level', 'routes: [{ name: default, pathPrefix: /a }]'],
  ['an invalid setting of a route', 'routes: [{ name: a, pathPrefix: /a, throttle: { rate: 0 } }]'],
  ['a setting that a route cannot have', 'routes: [{ name: a, pathPrefix: /a, throttle: { stateFile: /a } }]'],
  ['routes that are no list', 'routes: { a: 1 }'],
  ['a credential name in capitals', 'credentials: { Weather: { clientId: a } }'],
  ['a name within a named credential', 'credentials: { weather: { name: weather } }'],
  ['a list at the top level', '- a'],
] as const;

test.each(REFUSED)('refuses %s, as the program does', (_, yaml) => {
  expect(isAccepted(yaml)).toBe(false);
  expect(faultsOf(yaml)).not.toEqual([]);
});

/** Mistakes that only the program reports; docs/configuration.md names these classes. */
const LEFT_TO_THE_PROGRAM = [
  ['a rule between settings', 'throttle: { rate: 5, maxRate: 1 }'],
  ['a value and its file', 'auth: { clientId: a, clientIdFile: /etc/hostname }'],
  ['a file that does not exist', 'upstream: { caFile: /nowhere }'],
  ['an entry of a list', 'listen: { allowedHosts: ["*.example.com"] }'],
  ['the parts of a URL', 'upstream: { baseUrl: "https://user:password@a.example" }'],
  ['a name that the sidecar sets itself', 'auth: { extraHeaders: { Authorization: a } }'],
  ['an unknown credential of a route', 'routes: [{ name: a, pathPrefix: /a, credential: b }]'],
] as const;

test.each(LEFT_TO_THE_PROGRAM)('leaves to the program: %s', (_, yaml) => {
  expect(isAccepted(yaml)).toBe(false);
  expect(faultsOf(yaml)).toEqual([]);
});

test('never refuses a file that the program accepts', () => {
  const file = join(scratchDirectory(), 'sidecar.yaml');
  const value = fc.oneof(
    fc.constantFrom<unknown>(null, true, false, 0, 1, 0.5, 600, 5000, 'auto', 'none', 'info', 'a', '0600', '/a', 'a:1'),
    fc.constantFrom<unknown>(
      'localhost:1',
      'unix:/a',
      'https://a.example',
      'HTTP://localhost:1/b',
      'a,b',
      'GET /a; * /',
    ),
    fc.constantFrom<unknown>('redis://a:1/0', 'unix:///run/redis.sock', 'RS256', 'client_secret_post', 'X-Key', 'ä'),
    fc.constantFrom<unknown>([], ['a'], ['a', 'b'], { a: 'b' }, { 'X-A': 'remaining' }, ['GET /a']),
    fc.constantFrom<unknown>([{ status: 503 }], [{ status: 200, bodyContains: 'a', header: 'X-A: b' }]),
    fc.constantFrom<unknown>([{ path: '/a' }], [{ methods: ['GET'], path: '/' }], [{ methods: 'GET,PUT', path: '/a' }]),
    fc.string(),
    fc.double({ noNaN: true }),
  );
  const rounds = roundsOf({ check: 150, soak: 1500 });
  let accepted = 0;
  fc.assert(
    fc.property(fc.constantFrom(...SETTINGS.keys()), value, (key, raw) => {
      const tree = treeOf(key, raw);
      const inRoute = {
        routes: [{ name: 'a', pathPrefix: '/a', ...(key.startsWith('throttle.') ? (tree as object) : {}) }],
      };
      for (const document of [tree, inRoute]) {
        const text = JSON.stringify(document);
        writeFileSync(file, text);
        if (!isAccepted(text, file)) continue;
        accepted += 1;
        expect(faultsOf(text)).toEqual([]);
      }
    }),
    { numRuns: rounds },
  );
  expect(accepted).toBeGreaterThan(0.15 * rounds);
});
