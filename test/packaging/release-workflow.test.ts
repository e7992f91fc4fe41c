/**
 * .github/workflows/release.yml, which no test can run as a whole: its shell is valid, its commands exist, it may do no more than it needs,
 * and its check of the versions passes for this version and fails for another.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '..', '..');
const text = readFileSync(join(ROOT, '.github', 'workflows', 'release.yml'), 'utf8');

interface Step {
  readonly name?: string;
  readonly run?: string;
  readonly uses?: string;
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<string, { readonly permissions: Readonly<Record<string, string>>; readonly steps: readonly Step[] }>
  >;
}

const workflow = parse(text) as Workflow;
const steps = Object.values(workflow.jobs).flatMap((job) => job.steps);
const scripts = steps.flatMap(({ run }) => (run === undefined ? [] : [run]));
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
};

it('says that it has not been run', () => {
  expect(text).toMatch(/^# NOT RUN YET\./);
});

it('has shell that bash accepts, and expressions in no script', () => {
  expect(scripts.length).toBeGreaterThan(5);
  for (const script of scripts) {
    expect(spawnSync('bash', ['-n'], { input: script, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
    // What an expression inserts is run as shell.
    expect(script).not.toContain('${{');
  }
});

it('names npm scripts and files that exist', () => {
  const all = scripts.join('\n');
  const npmScripts = [...all.matchAll(/npm run (\S+)/g)].map(([, name = '']) => name);
  expect(npmScripts.length).toBeGreaterThan(1);
  expect(npmScripts.filter((name) => !(name in manifest.scripts))).toEqual([]);
  const files = [...all.matchAll(/(?<![\w./-])(?:deploy\/[\w./-]+|\.ci\/run|Dockerfile|CHANGELOG\.md)/g)].map(
    ([file]) => file,
  );
  expect(files.length).toBeGreaterThan(3);
  expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

it('gives each file a name of its own', () => {
  const names = [...scripts.join('\n').matchAll(/release\/(bearer-sidecar-\$VERSION-[\w.-]+)/g)].map(
    ([, name]) => name,
  );
  expect(names.length).toBeGreaterThan(5);
  expect(new Set(names).size).toBe(names.length);
  // Both programs choose this name; the package has another one before the chart is made.
  expect(text.match(/release\/bearer-sidecar-\$VERSION\.tgz/g)).toHaveLength(2);
});

it('may write contents, and nothing else', () => {
  expect(workflow.permissions).toEqual({});
  expect(Object.values(workflow.jobs).map(({ permissions }) => permissions)).toEqual([{ contents: 'write' }]);
});

describe('its check of the versions', () => {
  it.each([
    [`v${manifest.version}`, 0],
    ['v9.9.9', 1],
  ])('with the tag %s exits with %i', (tag, status) => {
    const folder = mkdtempSync(join(tmpdir(), 'release-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const file of ['package.json', 'Dockerfile', 'deploy/helm/bearer-sidecar/Chart.yaml']) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      cpSync(join(ROOT, file), join(folder, file));
    }
    const script = steps.find(({ name }) => name?.startsWith('The tag is the version'))?.run ?? '';
    const environment = join(folder, 'environment');
    const env = { ...process.env, TAG: tag, GITHUB_ENV: environment, GIT_DIR: join(ROOT, '.git') };
    // As the runner starts it.
    const result = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', script], { cwd: folder, env });
    expect(result.status).toBe(status);
    if (status === 0) expect(readFileSync(environment, 'utf8')).toContain(`VERSION=${manifest.version}\n`);
  });
});
