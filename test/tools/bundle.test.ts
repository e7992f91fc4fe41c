/** What the build makes of a program: the same behaviour, on every Node.js that package.json promises, with places that can be found. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { bundleIntoOne, bundleProgram } from '../../tools/bundle/bundle.ts';
import type { BundledFile } from '../../tools/bundle/bundle.ts';
import { writeProgram } from '../../tools/bundle/write-program.ts';

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A package with these modules, by their path in src/. */
function packageWith(modules: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'bundle-'));
  folders.push(root);
  const manifest = { name: 'tried', version: '1.0.0', type: 'module', engines: { node: '^22.21.0 || >=24.9.0' } };
  writeFileSync(join(root, 'package.json'), JSON.stringify(manifest));
  mkdirSync(join(root, 'src'));
  for (const [path, text] of Object.entries(modules)) writeFileSync(join(root, 'src', path), text);
  return root;
}

async function built(modules: Readonly<Record<string, string>>): Promise<{ folder: string; main: string }> {
  const root = packageWith(modules);
  const folder = join(root, 'dist');
  await writeProgram(root, folder);
  return { folder, main: join(folder, 'main.js') };
}

function run(main: string): string {
  return execFileSync(process.execPath, [main], { encoding: 'utf8' });
}

describe('a built program', () => {
  it.each([
    ['all of a module', "import path from 'node:path'; console.log(path.basename('a/b'));", 'b'],
    ['a namespace', "import * as path from 'node:path'; console.log(path.basename('a/b'));", 'b'],
    ['parts of one', "import { basename, join as put } from 'node:path'; console.log(basename(put('a', 'b')));", 'b'],
    ['both', "import path, { join as put } from 'node:path'; console.log(path.basename(put('a', 'b')));", 'b'],
    ['its default by name', "import { default as path } from 'node:path'; console.log(path.basename('a/b'));", 'b'],
    ['a submodule', "import { setTimeout as wait } from 'node:timers/promises'; console.log(await wait(1, 'b'));", 'b'],
    ['for its effect', "import 'node:path'; console.log('b');", 'b'],
  ])('takes from Node.js %s without an import', async (_, text, printed) => {
    const { main } = await built({ 'main.ts': text });
    expect(readFileSync(main, 'utf8')).not.toMatch(/\bimport\b/);
    expect(run(main)).toBe(`${printed}\n`);
  });

  it('does not change an import that is part of a string', async () => {
    const text = `import { basename } from "node:path";`;
    const { main } = await built({ 'main.ts': `console.log(${JSON.stringify(text)});` });
    expect(run(main)).toBe(`${text}\n`);
  });

  it('is ASCII, and prints the same text', async () => {
    const text = 'console.log("é€📦", `ß${"→"}\\€`, /[é-ü]📦/u.test("é📦"), "\\€".length);';
    const { main } = await built({ 'main.ts': text });
    expect(readFileSync(main, 'utf8')).toMatch(/^[\0-\x7f]*$/);
    expect(run(main)).toBe('é€📦 ß→€ true 1\n');
  });

  it('shows a short line for the place of an uncaught error', async () => {
    const filler = Array.from({ length: 500 }, (_, k) => `export const value${k} = Math.max(${k}, Date.now());`);
    const { main } = await built({
      'main.ts': "import { explode } from './other.ts'; setTimeout(() => { const what = 'boom'; explode(what); });",
      'other.ts': `${filler.join('\n')}\nexport class Bomb { light(what: string) { if (what !== '') throw new TypeError(what); } }
        export function explode(what: string) { for (const one of [new Bomb()]) one.light(what); console.log(${filler.map((_, k) => `value${k}`).join()}); }`,
    });
    const { status, stderr } = spawnSync(process.execPath, [main], { encoding: 'utf8' });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^throw new TypeError\(what\)/m);
    expect(stderr).toMatch(/at Bomb\.light \(.*main\.js:5\d\d:/);
    expect(stderr).toMatch(/at explode \(.*main\.js:5\d\d:/);
    expect(stderr.length).toBeLessThan(2000);
  });

  it('has no syntax that the oldest supported Node.js rejects', async () => {
    const { main } = await built({
      'main.ts': "{ using held = { [Symbol.dispose]: () => console.log('let go') }; console.log(typeof held); }",
    });
    expect(readFileSync(main, 'utf8')).not.toMatch(/\busing\s+held/);
    expect(run(main)).toBe('object\nlet go\n');
  });

  it('imports between its files by name: a newer file beside a running program is read correctly', async () => {
    const shared = 'export const alpha = () => "alpha";\nexport const omega = () => "omega";\n';
    const main = `import { alpha, omega } from './shared.ts'; console.log(alpha(), omega());
      await new Promise((done) => process.stdin.once('data', done)); const { late } = await import('./late.ts'); late(); process.exit();`;
    const late = "import { omega } from './shared.ts'; export const late = () => console.log(omega());";
    const old = await built({ 'main.ts': main, 'late.ts': late, 'shared.ts': shared });
    const newer = await built({
      'main.ts': main.replace('alpha, omega', 'aaa, alpha, omega').replace('alpha()', 'aaa(), alpha()'),
      'late.ts': late,
      'shared.ts': `export const aaa = () => "aaa";\n${shared}`,
    });
    writeFileSync(join(old.folder, 'late.js'), readFileSync(join(newer.folder, 'late.js')));
    expect(execFileSync(process.execPath, [old.main], { input: 'go', encoding: 'utf8' })).toBe('alpha omega\nomega\n');
  });
});

describe('a file of dist/', () => {
  const root = join(import.meta.dirname, '..', '..');
  let files: readonly BundledFile[] = [];

  beforeAll(async () => {
    files = await bundleProgram(root);
  });

  it('is named after a package, a folder or a module that it holds', () => {
    const wrong = files.filter(({ name, modules }) => !modules.some((path) => dashed(path).includes(dashed(name))));
    expect(wrong.map(({ name }) => name)).toEqual([]);
    const names = ['undici', 'pino', 'prom-client', 'convict', 'yaml', 'token', 'fleet', 'sidecar', 'page'];
    expect(files.map(({ name }) => name)).toEqual(expect.arrayContaining(names.map((name) => `${name}.js`)));
    expect(files.length).toBeLessThan(38);
  });

  it.each([
    ['command-line.js', ['yaml.js', 'undici.js', 'sidecar.js']],
    ['health.js', ['undici.js', 'sidecar.js']],
    ['check.js', ['pino.js', 'prom-client.js', 'sidecar.js']],
    ['run.js', ['check.js', 'init.js', 'sandbox.js', 'page.js', 'exporting.js']],
  ])('%s loads at once none of %j', (name, unwanted) => {
    const loaded = new Set([name]);
    for (const each of loaded) {
      const code = files.find((file) => file.name === each)?.code ?? '';
      for (const [, imported = ''] of code.matchAll(/\b(?:from|import)"\.\/([^"]+)"/g)) loaded.add(imported);
    }
    expect([...loaded]).toContain('convict.js');
    expect([...loaded].filter((each) => unwanted.includes(each))).toEqual([]);
  });
});

/** `-src-config-load-routes-` of `/src/config/load/routes.ts`. */
function dashed(path: string): string {
  return `-${path.replace(/\.\w+$/, '').replaceAll(/[^\w.]+/g, '-')}-`.replaceAll('--', '-');
}

it('refuses a bundle of one file that would import a package at run time', async () => {
  const root = packageWith({ 'main.ts': "import nothing from 'nowhere-to-be-found'; console.log(nothing);" });
  await expect(bundleIntoOne(root)).rejects.toThrow(/nowhere-to-be-found/);
});
