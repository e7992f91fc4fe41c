/**
 * `npm run release:rehearse`: runs the steps of .github/workflows/release.yml that can run on this machine (root on Debian), for the last commit,
 * and uses what they made as its users do. Prints a line for each step: ok, FAILED, or could not run and why. Nothing leaves this machine,
 * and nothing of it stays. Ends with 1 when a step failed.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NODE_VERSIONS } from '../../test/support/node-versions.ts';
import { buildBaseImage, readBaseImage } from '../image/base-image.ts';
import { installBuilder, writeBuildOptions } from '../image/builder.ts';
import { openPodman } from '../image/podman.ts';
import { runJobs } from './jobs.ts';
import { startRegistry } from './registry.ts';
import { CannotRunError, Report } from './report.ts';
import { tryBinary, tryChart, tryImage, tryPackage } from './users.ts';
import { readWorkflow } from './workflow.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What npm gives to the scripts of this project must not reach those of a clone. */
const OF_NPM_RUN = /^(?:npm_(?:lifecycle|package|command|config_local)|INIT_CWD)/;

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
}

/** @returns the folder of a command `docker` that is podman and builds without a registry */
function writeDocker(folder: string, buildOptions: readonly string[]): string {
  const commands = join(folder, 'commands');
  const docker = join(commands, 'docker');
  mkdirSync(commands);
  writeFileSync(
    docker,
    `#!/bin/sh\n[ "$1" = build ] || exec podman "$@"\nshift\nexec podman build ${buildOptions.join(' ')} "$@"\n`,
  );
  chmodSync(docker, 0o755);
  return commands;
}

/** An action's commit must be the one of the tag that is named beside it. */
function checkAction(line: string): void {
  const [, repository = '', commit = '', tag = ''] =
    /uses: ([\w-]+\/[\w-]+)@([0-9a-f]{40}) # (v[\d.]+)$/.exec(line) ?? [];
  if (tag === '') throw new Error(`expected uses: OWNER/NAME@COMMIT # vX.Y.Z, not ${line}`);
  const refs = [`refs/tags/${tag}`, `refs/tags/${tag}^{}`];
  const env = { ...process.env, GIT_TERMINAL_PROMPT: '0' };
  const args = ['ls-remote', `https://github.com/${repository}`, ...refs];
  const { status, stdout, stderr } = spawnSync('git', args, { env, encoding: 'utf8', timeout: 20_000 });
  if (status !== 0)
    throw new CannotRunError(
      `it is a commit; whether it is that of ${tag} was NOT CHECKED: ${stderr.trim().replace(/.*': /, '')}`,
    );
  if (!stdout.includes(commit)) throw new Error(`${tag} is another commit:\n${stdout}`);
}

async function rehearse(folder: string): Promise<void> {
  const report = new Report();
  const { text, workflow } = readWorkflow(ROOT);
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const base = readBaseImage(join(ROOT, 'Dockerfile'));
  const baseFile = buildBaseImage(base, join(ROOT, 'node_modules', '.cache', 'image'));
  using podman = openPodman(join(folder, 'podman'));
  podman.run('import', baseFile, `docker.io/library/${base.image}`);
  const commands = writeDocker(folder, writeBuildOptions(folder));
  const inherited = Object.entries(podman.env).filter(([name]) => !OF_NPM_RUN.test(name));
  const env: NodeJS.ProcessEnv = Object.fromEntries(inherited);
  env.PATH = [commands, podman.env.PATH].join(delimiter);

  const commit = git('rev-parse', 'HEAD');
  console.log(
    `commit ${commit}${git('status', '--porcelain') === '' ? '' : ', without the changes that are not committed'}`,
  );
  console.log(
    `docker is podman; ${base.image} is a Debian ${base.debian} of this machine's making with Node.js ${base.nodeVersion}`,
  );
  const artifacts = join(folder, 'artifacts');
  const release = await runJobs(workflow, { root: ROOT, commit, version, folder, artifacts, env, report });
  const trial = { release, name: `bearer-sidecar-${version}`, folder, env, podman };
  for (const nodeVersion of NODE_VERSIONS.filter((each) => each.includes('.')))
    await report.step(`users: npm package on Node.js ${nodeVersion}, another user`, () =>
      tryPackage(trial, nodeVersion),
    );
  await report.step(`users: binary on Debian ${base.debian} without Node.js`, () => tryBinary(trial, baseFile));
  using registry = await startRegistry(join(folder, 'registry'));
  await report.step('users: image from a registry', () => tryImage(trial, registry.address));
  await report.step('users: Helm chart from a registry', () => tryChart(trial, registry.address));
  await report.step('owner: npm publish --dry-run', () =>
    execFileSync('npm', ['publish', '--dry-run', join(release, `${trial.name}-npm.tgz`)], {
      env,
      encoding: 'utf8',
    }).trim(),
  );
  for (const line of new Set(text.match(/uses: .*/g)))
    await report.step(`actions: ${line.replace('uses: ', '')}`, () => checkAction(line));
  process.exitCode = report.hasFailed ? 1 : 0;
}

installBuilder('npm run release:rehearse', [
  { program: 'docker-registry', package: 'docker-registry' },
  { program: 'curl', package: 'curl' },
]);
const folder = mkdtempSync(join(tmpdir(), 'rehearsal-'));
// Other users read what is installed for them.
chmodSync(folder, 0o755);
try {
  await rehearse(folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
