/** Uses the files of a release as those who receive them do. */
import { execFile, type SpawnOptions } from 'node:child_process';
import { chownSync, copyFileSync, globSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installNode } from '../../test/support/node-versions.ts';
import type { Podman } from '../image/podman.ts';
import type { Bom } from '../image/sbom.ts';
import { tryContainer } from '../image/try-container.ts';
import { trySandbox } from './try-sandbox.ts';

const run = promisify(execFile);

/** Neither root nor the owner of the files. */
const NOBODY = 65_534;
/** The oldest that has all that the chart can make. */
const KUBERNETES = '1.29.0';

/** What was released, and where it is tried. */
export interface Trial {
  /** Holds the files of the release. */
  readonly release: string;
  /** The names of its files begin with this. */
  readonly name: string;
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly podman: Podman;
}

/** Installs the package as a user who has nothing but this Node.js and npm, and sends a call through it. */
export async function tryPackage({ release, name, folder, env }: Trial, nodeVersion: string): Promise<string> {
  const home = join(folder, `home-${nodeVersion}`);
  const programs = join(folder, `node-${nodeVersion}`);
  for (const path of [home, programs]) mkdirSync(path);
  chownSync(home, NOBODY, NOBODY);
  const node = join(programs, 'node');
  copyFileSync(await installNode(nodeVersion), node);
  const npm = (await run('sh', ['-c', 'realpath "$(command -v npm)"'], { env })).stdout.trim();
  const registry = (await run('npm', ['config', 'get', 'registry'], { env })).stdout.trim();
  const user: SpawnOptions = {
    uid: NOBODY,
    gid: NOBODY,
    cwd: home,
    env: {
      HOME: home,
      PATH: `${programs}:/usr/bin:/bin`,
      NODE_EXTRA_CA_CERTS: env.NODE_EXTRA_CA_CERTS,
      npm_config_registry: registry,
      npm_config_update_notifier: 'false',
    },
  };
  const installed = join(home, '.local');
  const tarball = join(release, `${name}-npm.tgz`);
  const { stderr } = await run(node, [npm, 'install', '--global', '--prefix', installed, '--no-audit', tarball], {
    ...user,
    encoding: 'utf8',
  });
  if (stderr !== '') throw new Error(`npm install printed ${stderr}`);
  const response = await trySandbox([join(installed, 'bin', 'bearer-sidecar'), 'sandbox'], user);
  return `${response}; ${checkBom(release, `${name}.sbom.cdx.json`, installed)}`;
}

/** Starts the binary where there is no Node.js, with nothing writable, as an arbitrary user. @param root a Debian's files with Node.js in usr/local */
export async function tryBinary({ release, name, folder, podman }: Trial, root: string): Promise<string> {
  const bare = join(folder, 'debian');
  mkdirSync(bare);
  await run('tar', ['-xf', root, '-C', bare, '--exclude=./usr/local', '--exclude=./dev']);
  const binary = join(release, `${name}-${process.platform}-${process.arch}`);
  const strict = ['--read-only', '--read-only-tmpfs=false', '--cap-drop=all', '--user=1000650000:0', '--network=host'];
  const program = [`--volume=${binary}:/opt/bearer-sidecar:ro`, '--env=SIDECAR_LISTEN', '--env=SIDECAR_ADMIN_LISTEN'];
  const start = ['run', '--rm', ...strict, ...program, '--rootfs', bare];
  podman.run(...start, 'sh', '-c', '! command -v node');
  return await trySandbox(['podman', ...start, '/opt/bearer-sidecar', 'sandbox'], { env: podman.env });
}

/** Pushes the image of the file to a registry, forgets it, pulls it, and starts it. @param registry such as `127.0.0.1:5000` */
export async function tryImage({ release, name, podman, folder }: Trial, registry: string): Promise<string> {
  const own = `bearer-sidecar:${name.replace('bearer-sidecar-', '')}`;
  const published = `${registry}/${own}`;
  podman.run('rmi', '--force', own);
  // Debian 12's podman loads no file that is compressed with gzip.
  const file = join(release, `${name}-image-${process.platform}-${process.arch}.tar.gz`);
  await run('sh', ['-c', 'gunzip --stdout "$0" | podman load', file], { env: podman.env });
  podman.run('tag', own, published);
  podman.run('push', '--tls-verify=false', published);
  podman.run('rmi', '--force', own, published);
  podman.run('pull', '--quiet', '--tls-verify=false', published);
  const seen: string[] = [];
  await tryContainer(podman, published, (text) => seen.push(text));
  const app = join(folder, 'app');
  const container = podman.run('create', published);
  podman.run('cp', `${container}:/app`, app);
  const bom = `${name}-image-${process.platform}-${process.arch}.sbom.cdx.json`;
  return [...seen, checkBom(release, bom, app)].join('\n               ');
}

/** Pushes the chart to a registry, and renders it from there with each file of values that comes with it. */
export async function tryChart({ release, name, folder, env }: Trial, registry: string): Promise<string> {
  const chart = join(release, `${name}-chart.tgz`);
  await run('tar', ['-xzf', chart, '-C', folder]);
  const files = globSync(join(folder, 'bearer-sidecar', 'ci', '*.yaml'));
  if (files.length === 0) throw new Error('there are no values in the chart');
  await run('helm', ['push', chart, `oci://${registry}/charts`], { env });
  for (const values of files) {
    const options = [`--kube-version=${KUBERNETES}`, `--values=${values}`];
    const { stdout } = await run('helm', ['template', 'trial', `oci://${registry}/charts/bearer-sidecar`, ...options], {
      env,
    });
    if (!/^kind: /m.test(stdout)) throw new Error(`${values} makes nothing`);
  }
  return `helm template with ${String(files.length)} files of values`;
}

/** @throws Error unless the file lists exactly the packages below the folder */
function checkBom(release: string, file: string, folder: string): string {
  const { components } = JSON.parse(readFileSync(join(release, file), 'utf8')) as Bom;
  const listed = components.filter(({ purl }) => purl.startsWith('pkg:npm/')).map((part) => part['bom-ref']);
  const installed = globSync('**/node_modules/{*,@*/*}/package.json', { cwd: folder }).flatMap((path) => {
    const { name, version } = JSON.parse(readFileSync(join(folder, path), 'utf8')) as { name: string; version: string };
    return name === 'bearer-sidecar' ? [] : [`${name}@${version}`];
  });
  const wrong = [
    ...listed.filter((each) => !installed.includes(each)),
    ...installed.filter((each) => !listed.includes(each)),
  ];
  if (wrong.length > 0) throw new Error(`only in ${file}, or only installed: ${wrong.join(' ')}`);
  return `the ${String(listed.length)} packages of ${file}`;
}
