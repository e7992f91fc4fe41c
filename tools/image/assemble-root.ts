/**
 * Runs inside the image build: puts the files of the final image together, in three folders that become its layers, from the one
 * that seldom changes to the one that changes with every release. There is no shell, no package manager and no npm in them.
 *
 * node assemble-root.ts TARGET, in a folder with dist/, node_modules/ (runtime packages only), package.json and its lock file.
 */
import { chmodSync, copyFileSync, cpSync, lutimesSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findLibraries, findPackages, readDistribution, type DebianPackage } from './debian.ts';
import { openToAllUsers } from './file-modes.ts';
import { createLauncher } from './launcher.ts';
import { removeUnusedFiles } from './prune.ts';
import { createBom, type Component } from './sbom.ts';

/** Where the image of Node.js keeps its licence, which has those of all that is linked into it. */
const NODE_LICENCE = '/usr/local/LICENSE';

/** As in glibc's own default, but files first: a line in /etc/hosts must win. */
const NAME_SERVICE = 'hosts: files dns\n';

const PASSWD = 'root:x:0:0:root:/:/sbin/nologin\nsidecar:x:1000:1000:bearer-sidecar:/app:/sbin/nologin\n';
const GROUP = 'root:x:0:\nsidecar:x:1000:\n';

function assembleSystem(root: string): DebianPackage[] {
  const libraries = findLibraries(process.execPath);
  const packages = findPackages(libraries);
  for (const file of libraries) copyInto(root, file, file);
  copyInto(root, process.execPath, '/usr/local/bin/node');
  copyInto(root, NODE_LICENCE, '/usr/share/doc/node/LICENSE');
  copyInto(root, '/etc/os-release', '/etc/os-release');
  for (const { name, status } of packages) {
    const licence = join('/usr/share/doc', name, 'copyright');
    copyInto(root, licence, licence);
    write(root, `/var/lib/dpkg/status.d/${name}`, status);
  }
  write(root, '/etc/nsswitch.conf', NAME_SERVICE);
  write(root, '/etc/passwd', PASSWD);
  write(root, '/etc/group', GROUP);
  // Where a company's own roots can be mounted. Node.js brings the public ones.
  mkdirSync(join(root, 'etc/ssl/certs'), { recursive: true });
  mkdirSync(join(root, 'tmp'));
  chmodSync(join(root, 'tmp'), 0o1777);
  return packages;
}

function assemblePackages(root: string): void {
  const target = join(root, 'app/node_modules');
  cpSync('node_modules', target, { recursive: true });
  removeUnusedFiles(target);
}

function assembleApplication(root: string, system: readonly DebianPackage[]): void {
  const app = join(root, 'app');
  cpSync('dist', join(app, 'dist'), { recursive: true, filter: (path) => !path.endsWith('.map') });
  for (const file of ['package.json', 'LICENSE']) copyFileSync(file, join(app, file));
  const command = '/usr/local/bin/bearer-sidecar';
  write(root, command, createLauncher('/usr/local/bin/node', '/app/dist/main.js'));
  chmodSync(join(root, command), 0o755);
  const bom = createBom('.', [nodeComponent(), ...debianComponents(system)]);
  writeFileSync(join(app, 'sbom.cdx.json'), `${JSON.stringify(bom, null, 2)}\n`);
}

function nodeComponent(): Component {
  const version = process.versions.node;
  return {
    'bom-ref': `node@${version}`,
    type: 'platform',
    name: 'node',
    version,
    purl: `pkg:generic/node@${version}`,
  };
}

function debianComponents(packages: readonly DebianPackage[]): Component[] {
  const { id, version: release } = readDistribution();
  return packages.map(({ name, version, architecture }) => ({
    'bom-ref': `${name}@${version}`,
    type: 'library',
    name,
    version,
    purl: `pkg:deb/${id}/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}&distro=${id}-${release}`,
  }));
}

function copyInto(root: string, from: string, to: string): void {
  mkdirSync(dirname(join(root, to)), { recursive: true });
  copyFileSync(from, join(root, to));
}

function write(root: string, to: string, text: string): void {
  mkdirSync(dirname(join(root, to)), { recursive: true });
  writeFileSync(join(root, to), text);
}

/** Two builds of the same thing must be the same bytes, and a layer's bytes have its files' times in them. */
function setTimes(root: string, seconds: number): void {
  for (const path of ['.', ...readdirSync(root, { encoding: 'utf8', recursive: true })])
    lutimesSync(join(root, path), seconds, seconds);
}

const [target = '/image'] = process.argv.slice(2);
const layers = {
  system: join(target, 'system'),
  packages: join(target, 'packages'),
  application: join(target, 'application'),
};
for (const layer of Object.values(layers)) mkdirSync(join(layer, 'app'), { recursive: true });
const taken = assembleSystem(layers.system);
assemblePackages(layers.packages);
assembleApplication(layers.application, taken);
for (const layer of Object.values(layers)) openToAllUsers(layer);
for (const layer of Object.values(layers)) setTimes(layer, Number(process.env.SOURCE_DATE_EPOCH ?? 0));
