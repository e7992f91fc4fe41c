/**
 * Every command of every page. What needs nothing but the sandbox is run as it stands, on free ports and in a folder of its own;
 * of the rest the files, options and scripts that it names are looked up. Fences say what they hold.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { commandsIn, treatmentOf } from './commands.ts';
import { PAGES, ROOT, blocksOf, readPage } from './pages.ts';
import type { Block } from './pages.ts';
import { startSandbox } from './sandbox.ts';
import type { RunningSandbox } from './sandbox.ts';

const OURS = /^((?:[A-Z_]+=\S+ )*)(?:npx )?(?:build\/)?bearer-sidecar\b/;
const PATIENCE_MS = 60_000;
const BLOCKS = PAGES.flatMap(blocksOf);
const where = ({ page, line }: Block): string => `${page}:${String(line)}`;
const withLanguage = (...languages: string[]): Block[] => BLOCKS.filter(({ language }) => languages.includes(language));

test('every fence says what it holds', () => {
  const known = new Set([
    'sh',
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
  // Placeholders of a template engine are no YAML before it has run.
  const documents = parseAllDocuments(text.replaceAll(/^ *\{\{.*\}\}$/gm, ''));
  expect(documents.flatMap(({ errors }) => errors.map(({ message }) => message))).toEqual([]);
});

test.each(withLanguage('json').map((block) => [where(block), block] as const))('%s is JSON', (_, { text }) => {
  expect(JSON.parse(text)).toBeTypeOf('object');
});

test.each(withLanguage('sh').map((block) => [where(block), block] as const))('%s can be meant', (_, block) => {
  for (const command of commandsIn(block)) {
    const treatment = treatmentOf(command);
    expect(treatment, `nobody has said how to try: ${command.text}`).toBeDefined();
    expect(treatment?.kind === 'read' ? treatment.faults : []).toEqual([]);
  }
});

test('what is run in a container of the image is there: Node.js, no shell and no kill', () => {
  const programs = PAGES.flatMap((page) =>
    [...readPage(page).matchAll(/\bkubectl exec [^`\n]*? -- (\S+)/g)].map(([, program]) => program),
  );
  expect(programs.length).toBeGreaterThan(3);
  expect([...new Set(programs)]).toEqual(['/usr/local/bin/node']);
});

test('what is wrong is found', () => {
  const block = (text: string): Block => ({ page: '', line: 0, language: 'sh', text });
  const judge = (text: string) => commandsIn(block(text)).map(treatmentOf);
  expect(judge('frobnicate --all')).toEqual([undefined]);
  expect(judge('bearer-sidecar chekc')).toMatchObject([{ kind: 'read', faults: [expect.stringContaining('check')] }]);
  expect(judge('npm run no-such-script && npm test')).toMatchObject([{ faults: [expect.any(String)] }, { faults: [] }]);
  expect(judge('docker compose -f deploy/none.yaml --sideways up')).toMatchObject([{ faults: { length: 2 } }]);
  expect(judge('curl -d \'{ "a": 1 }\' \\\n  http://localhost:18080/x   # a comment')).toMatchObject([{ kind: 'run' }]);
});

describe('run as it stands', () => {
  let sandbox: RunningSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox('docs-commands');
  }, PATIENCE_MS);
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
      if (treatmentOf(command)?.kind !== 'run') continue;
      const text = command.text
        .replace(/^curl /, 'curl --fail --silent --show-error --max-time 20 ')
        .replace(OURS, (_, variables: string) => `${variables}'${process.execPath}' '${join(ROOT, 'src', 'main.ts')}'`)
        // A completion script goes into a person's own folders: here are none.
        .replace(/ > .*$/, ' > completion')
        .replaceAll('http://localhost:18080', sandbox.proxyUrl)
        .replaceAll('http://localhost:19464', sandbox.adminUrl);
      const env = { PATH: process.env.PATH ?? '', HOME: folder, ...(text.includes(' init ') ? {} : sandbox.client) };
      await run('/bin/sh', ['-ec', text], { cwd: folder, env, timeout: 30_000 });
    }
  }

  const runs = withLanguage('sh').filter((block) => commandsIn(block).some((one) => treatmentOf(one)?.kind === 'run'));
  const isLast = ({ text }: Block): boolean => text.includes('/quitquitquit');
  const ordered = [...runs.filter((block) => !isLast(block)), ...runs.filter(isLast)];

  test.each(ordered.map((block) => [where(block), block] as const))(
    '%s',
    async (_, block) => {
      await expect(runAll(block)).resolves.toBeUndefined();
    },
    PATIENCE_MS,
  );

  test('the last one asked it to end', async () => {
    expect(ordered.length).toBeGreaterThan(8);
    expect(await sandbox.exit).toEqual({ code: 0, signal: null });
  });
});
