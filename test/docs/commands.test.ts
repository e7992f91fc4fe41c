/**
 * Every command of every page. A command that needs only the sandbox is run on free ports and in its own folder; of the others, the files,
 * options and scripts are checked. Each fenced block names its language.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { MAIN } from '../support/main-file.ts';
import { commandsIn, checkCommand } from './commands.ts';
import { PAGES, ROOT, blocksOf, readPage } from './pages.ts';
import type { Block } from './pages.ts';
import { startSandbox } from './sandbox.ts';
import type { RunningSandbox } from './sandbox.ts';

const OURS = /^((?:[A-Z_]+=\S+ )*)(?:\.\/|build\/|node_modules\/\.bin\/)?bearer-sidecar\b/;
const TIMEOUT_MS = 60_000;
const BLOCKS = PAGES.flatMap(blocksOf);
const where = ({ page, line }: Block): string => `${page}:${String(line)}`;
const withLanguage = (...languages: string[]): Block[] => BLOCKS.filter(({ language }) => languages.includes(language));

test('every fenced block names its language', () => {
  const known = new Set([
    'sh',
    'powershell',
    'yaml',
    'json',
    'ini',
    'promql',
    'http',
    'text',
    'properties',
    'java',
    'csharp',
    'php',
    'python',
  ]);
  expect(BLOCKS.filter(({ language }) => !known.has(language)).map(where)).toEqual([]);
  expect(withLanguage('sh').length).toBeGreaterThan(30);
});

test.each(withLanguage('yaml').map((block) => [where(block), block] as const))('%s is YAML', (_, { text }) => {
  // A template engine replaces these lines before the text is YAML.
  const documents = parseAllDocuments(text.replaceAll(/^ *\{\{.*\}\}$/gm, ''));
  expect(documents.flatMap(({ errors }) => errors.map(({ message }) => message))).toEqual([]);
});

test.each(withLanguage('json').map((block) => [where(block), block] as const))('%s is JSON', (_, { text }) => {
  expect(JSON.parse(text)).toBeTypeOf('object');
});

test.each(withLanguage('sh').map((block) => [where(block), block] as const))(
  '%s names commands, options and files that exist',
  (_, block) => {
    for (const command of commandsIn(block)) {
      const check = checkCommand(command);
      expect(check, `no rule for this command: ${command.text}`).toBeDefined();
      expect(check?.kind === 'read' ? check.faults : []).toEqual([]);
    }
  },
);

test('no command of a clone may fetch a package of this name and run it, as npx does in another folder', () => {
  const isOfNpx = (page: string): boolean => /\b(?:npx|npm exec)(?: -\S*)* bearer-sidecar/.test(readPage(page));
  expect(PAGES.filter(isOfNpx)).toEqual([]);
});

test('commands in a container use the launcher of the image', () => {
  const programs = PAGES.flatMap((page) =>
    [...readPage(page).matchAll(/\bkubectl exec [^`\n]*? -- (\S+)/g)].map(([, program]) => program),
  );
  expect(programs.length).toBeGreaterThan(3);
  expect([...new Set(programs)].toSorted()).toEqual(['bearer-sidecar']);
});

test('a wrong command, option, script or file is reported', () => {
  const block = (text: string): Block => ({ page: '', line: 0, language: 'sh', text });
  const check = (text: string) => commandsIn(block(text)).map(checkCommand);
  expect(check('frobnicate --all')).toEqual([undefined]);
  expect(check('bearer-sidecar chekc')).toMatchObject([{ kind: 'read', faults: [expect.stringContaining('check')] }]);
  expect(check('npm run no-such-script && npm test')).toMatchObject([{ faults: [expect.any(String)] }, { faults: [] }]);
  expect(check('docker compose -f deploy/none.yaml --sideways up')).toMatchObject([{ faults: { length: 2 } }]);
  expect(check('curl -d \'{ "a": 1 }\' \\\n  http://localhost:18080/x   # a comment')).toMatchObject([{ kind: 'run' }]);
});

test('the launcher of a clone runs the program from any folder', async () => {
  const { stdout } = await promisify(execFile)(join(ROOT, 'bearer-sidecar'), ['--version'], { cwd: tmpdir() });
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

describe('run against the sandbox', () => {
  let sandbox: RunningSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox('docs-commands');
  }, TIMEOUT_MS);
  afterAll(async () => {
    await sandbox[Symbol.asyncDispose]();
  });

  const run = promisify(execFile);

  async function runAll(block: Block): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'bearer-sidecar-docs-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    if (!block.text.includes('init --yes')) writeFileSync(join(folder, 'sidecar.yaml'), 'throttle: { rate: auto }\n');
    writeFileSync(join(folder, 'secret.txt'), sandbox.client.SIDECAR_CLIENT_SECRET ?? '', { mode: 0o600 });
    for (const command of commandsIn(block)) {
      if (checkCommand(command)?.kind !== 'run') continue;
      const text = command.text
        .replace(/^curl /, 'curl --fail --silent --show-error --max-time 20 ')
        .replace(OURS, (_, variables: string) => `${variables}'${process.execPath}' '${join(ROOT, MAIN)}'`)
        .replaceAll('http://localhost:18080', sandbox.proxyUrl)
        .replaceAll('http://localhost:19464', sandbox.adminUrl);
      const env = { PATH: process.env.PATH ?? '', HOME: folder, ...(text.includes(' init ') ? {} : sandbox.client) };
      await run('/bin/sh', ['-ec', text], { cwd: folder, env });
    }
  }

  const runs = withLanguage('sh').filter((block) => commandsIn(block).some((one) => checkCommand(one)?.kind === 'run'));
  const isLast = ({ text }: Block): boolean => text.includes('/quitquitquit');
  const ordered = [...runs.filter((block) => !isLast(block)), ...runs.filter(isLast)];

  test.each(ordered.map((block) => [where(block), block] as const))(
    '%s',
    async (_, block) => {
      await expect(runAll(block)).resolves.toBeUndefined();
    },
    TIMEOUT_MS,
  );

  test('the last command ends the sandbox', async () => {
    expect(ordered.length).toBeGreaterThan(8);
    expect(await sandbox.exit).toEqual({ code: 0, signal: null });
  });
});
