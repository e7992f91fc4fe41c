/** Settings, variables, metrics, scripts and files that a page names exist: compared with the schema, the project and a running sandbox. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CONFIG_VARIABLE, SETTINGS } from '../../src/config/schema/schema.ts';
import { ROUTE_SETTINGS } from '../../src/config/schema/schema-routes.ts';
import { startSandbox } from './sandbox.ts';
import type { RunningSandbox } from './sandbox.ts';
import { PAGES, ROOT, proseOf, readPage } from './pages.ts';

/** The history keeps old names; other tests compare generated pages with their source. */
const NAMING = PAGES.filter((page) => !/^(?:CHANGELOG|config\/reference|docs\/adr\/.*)\.?/.test(page));

const KEYS = new Set([...SETTINGS].map(([key]) => key as string));
/** Keys, and the sections that hold them. */
const SECTIONS_AND_KEYS = new Set([...KEYS].flatMap((key) => [key, key.replace(/\.[^.]*$/, '')]));
const SECTIONS = new Set([...KEYS].map((key) => key.replace(/\..*$/s, '')));
const VARIABLES = new Set([...[...SETTINGS].map(([, setting]) => setting.env), CONFIG_VARIABLE]);

/** One of deploy/compose.yaml, and a wrong one that a page shows as an example. */
const OTHER_VARIABLES = new Set(['SIDECAR_COMMAND', 'SIDECAR_THROTTLE_RATE']);
/** Fields of /status that exist only in a fleet. */
const STATUS_OF_A_FLEET = new Set(['throttle.fleet']);

let sandbox: RunningSandbox;
beforeAll(async () => {
  sandbox = await startSandbox('docs-names');
});
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
});

async function read(path: string): Promise<string> {
  return await (await fetch(sandbox.adminUrl + path)).text();
}

function isField(status: unknown, path: string): boolean {
  let value = status;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !(name in value)) return false;
    value = (value as Record<string, unknown>)[name];
  }
  return true;
}

/** Unknown names, each with its page. */
function unknown(pattern: RegExp, text: (page: string) => string, isKnown: (name: string) => boolean): string[] {
  return NAMING.flatMap((page) =>
    [...text(page).matchAll(pattern)].map(([, name = '']) => (isKnown(name) ? '' : `${page}: ${name}`)),
  ).filter((fault) => fault !== '');
}

describe('names on pages that exist', () => {
  test('environment variables', () => {
    const isKnown = (name: string): boolean => VARIABLES.has(name) || OTHER_VARIABLES.has(name);
    expect(unknown(/\b(SIDECAR_[A-Z0-9]+(?:_[A-Z0-9]+)*)\b(?!_)/g, readPage, isKnown)).toEqual([]);
  });

  test('setting keys and fields of /status', async () => {
    const status: unknown = JSON.parse(await read('/status'));
    const isKnown = (name: string): boolean =>
      !SECTIONS.has(name.replace(/\..*$/s, '')) ||
      SECTIONS_AND_KEYS.has(name) ||
      name in ROUTE_SETTINGS ||
      STATUS_OF_A_FLEET.has(name) ||
      isField(status, name);
    const faults = unknown(/`([a-z][A-Za-z]*(?:\.[a-z][A-Za-z]*)+)`/g, proseOf, isKnown);
    // The chart's own keys are checked by its schema.
    expect(faults.filter((fault) => !fault.startsWith('deploy/helm/'))).toEqual([]);
  });

  test('npm scripts', () => {
    const scripts = Object.keys((JSON.parse(readPage('package.json')) as { scripts: object }).scripts);
    const isKnown = (name: string): boolean => name.endsWith(':') || scripts.includes(name);
    expect(unknown(/`npm run ([\w:-]+)/g, readPage, isKnown)).toEqual([]);
  });

  test('CONTRIBUTING.md has all long tests, and ARCHITECTURE.md all folders of src', () => {
    const { scripts } = JSON.parse(readPage('package.json')) as { scripts: object };
    const long = Object.keys(scripts).filter((name) => name.startsWith('soak:'));
    const [named, tree] = [readPage('CONTRIBUTING.md'), readPage('ARCHITECTURE.md').split('```text\nsrc/')[1] ?? ''];
    const sources = globSync('*', { cwd: join(ROOT, 'src') }).filter((name) => !name.endsWith('.d.ts'));
    expect([long.length, sources.length].every((count) => count > 5)).toBe(true);
    expect(long.filter((name) => !named.includes(`\`${name}\``))).toEqual([]);
    expect(sources.filter((name) => !new RegExp(`^  (?:.* )?${name}[ /\\n]`, 'm').test(tree))).toEqual([]);
  });

  test('files of the project, with or without src/', () => {
    const isThere = (path: string): boolean => globSync([path, `${path}.ts`], { cwd: ROOT }).length > 0;
    const isKnown = (path: string): boolean => isThere(path) || isThere(`src/${path}`);
    const folders = ['config', 'deploy', 'docs', 'src', 'test', 'tools', ...globSync('*/', { cwd: join(ROOT, 'src') })];
    const names = folders.map((folder) => folder.replace(/\/$/, '')).join('|');
    expect(unknown(new RegExp(`\`((?:${names})/[^\\s\`…]+)\``, 'g'), proseOf, isKnown)).toEqual([]);
  });

  test('metrics of the process', async () => {
    const exposition = await read('/metrics');
    const names = new Set([...exposition.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name));
    const pattern = /\b((?:process|nodejs)_[a-z0-9_]+)\b/g;
    expect(
      unknown(pattern, readPage, (name) => names.has(name.replace(/_(?:bucket|sum|count)$/, '')) || names.has(name)),
    ).toEqual([]);
  });

  test('the patterns match existing names', () => {
    expect([...readPage('README.md').matchAll(/\bSIDECAR_[A-Z_]+/g)].length).toBeGreaterThan(5);
    expect(unknown(/\b(SIDECAR_[A-Z_]+)\b/g, readPage, () => false).length).toBeGreaterThan(50);
  });
});
