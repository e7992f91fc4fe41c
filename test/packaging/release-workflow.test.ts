/**
 * .github/workflows/release.yml, which no test can run as a whole: its shell is valid, its commands exist, it may do no more than it needs,
 * it builds for both platforms, signs and attests what it releases, and its check of the versions passes for this version and fails for another.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ACTIONS, NOT_REHEARSED, actionOf, readWorkflow, type Step } from '../../tools/release/workflow.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const { text, workflow } = readWorkflow(ROOT);

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

it('is rehearsed step by step: `npm run release:rehearse` runs the script, does what the action does, or says why not', () => {
  const known = new Set([...Object.keys(ACTIONS), ...Object.keys(NOT_REHEARSED)]);
  const ways = (step: Step) => [step.name ?? '', actionOf(step)].filter((way) => known.has(way));
  expect(steps.filter((step) => step.run === undefined && ways(step).length === 0)).toEqual([]);
  expect(new Set(steps.flatMap(ways))).toEqual(known);
});

it('gives each file a name of its own', () => {
  const names = [...scripts.join('\n').matchAll(/release\/(bearer-sidecar-\$VERSION[-.](?!tgz)[\w.$-]+)/g)].map(
    ([, name]) => name,
  );
  expect(names.length).toBeGreaterThan(7);
  expect(new Set(names).size).toBe(names.length);
  // Both programs choose this name; the package has another one before the chart is made.
  expect(text.match(/release\/bearer-sidecar-\$VERSION\.tgz/g)).toHaveLength(2);
});

it('writes the release and its attestations in one job, which runs no code of a package, and nothing in the others', () => {
  expect(workflow.permissions).toEqual({});
  const { release, ...others } = workflow.jobs;
  for (const { permissions } of Object.values(others)) expect(permissions).toEqual({ contents: 'read' });
  expect(release.permissions).toEqual({ contents: 'write', 'id-token': 'write', attestations: 'write' });
  expect(release.needs).toEqual(Object.keys(others));
  for (const { run = '' } of release.steps) expect(run).not.toMatch(/\b(?:npm|npx|node|docker|\.ci)\b/);
});

it('names each action by a commit, and always the same one', () => {
  const actions = text.match(/uses: .*/g) ?? [];
  for (const action of actions) expect(action).toMatch(/^uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  const names = (lines: readonly string[]) => new Set(lines.map((line) => line.replace(/@.*/, '')));
  expect(new Set(actions).size).toBe(names(actions).size);
});

it('builds the binary and the image on a machine of each platform, and runs the image there', () => {
  const { strategy, steps: builds } = workflow.jobs.platforms;
  expect(strategy?.matrix.include).toEqual([
    { runner: 'ubuntu-24.04', platform: 'linux-x64', architecture: 'amd64' },
    { runner: 'ubuntu-24.04-arm', platform: 'linux-arm64', architecture: 'arm64' },
  ]);
  const commands = builds.map(({ run = '' }) => run).join('\n');
  expect(commands).toMatch(/npm run build:binary .*\$PLATFORM/);
  expect(commands).toMatch(/docker build [^]*\.Architecture[^]*docker run [^]*docker save [^]*\$PLATFORM/);
  // What npm ci installs on them.
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as { packages: object };
  for (const { platform = '' } of strategy?.matrix.include ?? [])
    expect(Object.keys(lock.packages)).toEqual(
      expect.arrayContaining([`node_modules/node-${platform}`, `node_modules/@rolldown/binding-${platform}-gnu`]),
    );
});

it('signs the sums of all files, and attests their provenance and what is in the package and the images', () => {
  const { steps: last } = workflow.jobs.release;
  const at = (part: string) => last.findIndex((step) => JSON.stringify(step).includes(part));
  const order = [
    'download-artifact@',
    'sha256sum -- *',
    'cosign sign-blob',
    'cosign verify-blob',
    'attest-build-',
    'gh release',
  ];
  expect(order.map(at).toSorted((a, b) => a - b)).toEqual(order.map(at));
  expect(order.map(at)).not.toContain(-1);
  expect(last[at('attest-build-')]?.with).toEqual({ 'subject-checksums': 'release/SHA256SUMS' });
  const bills = last.filter(({ uses }) => uses?.startsWith('actions/attest-sbom@')).map((step) => step.with ?? {});
  const made = scripts.join('\n').replaceAll('$VERSION', '${{ env.VERSION }}');
  const platforms = workflow.jobs.platforms.strategy?.matrix.include.map(({ platform = '' }) => platform) ?? [];
  expect(bills).toHaveLength(1 + platforms.length);
  for (const file of bills.flatMap((bill) => Object.values(bill))) {
    const generic = platforms.reduce((name, platform) => name.replace(platform, '$PLATFORM'), String(file));
    expect(made).toContain(generic);
  }
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
    const output = join(folder, 'output');
    const env = { ...process.env, TAG: tag, GITHUB_OUTPUT: output, GIT_DIR: join(ROOT, '.git') };
    // As the runner starts it.
    const result = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', script], { cwd: folder, env });
    expect(result.status).toBe(status);
    if (status === 0) expect(readFileSync(output, 'utf8')).toMatch(/^version=[\d.]+\nepoch=\d+\n$/);
  });
});
