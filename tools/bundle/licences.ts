/** The licences of what a bundle or a binary consists of: they must be distributed with it. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Paths of the licence of Node.js, relative to the folder above that of its program. */
const NODE_LICENCES = ['LICENSE', 'share/doc/node/LICENSE', 'share/doc/nodejs/copyright'];
const SEPARATOR = '='.repeat(80);

/**
 * One text: this package's licence, that of the running Node.js, and those of the packages that the files belong to.
 * @param root this package's folder
 * @param files absolute paths
 */
export function gatherLicences(root: string, files: readonly string[]): string {
  return [describeNode(), gatherPackageLicences(root, files)].join('\n');
}

/** The same without Node.js. */
export function gatherPackageLicences(root: string, files: readonly string[]): string {
  const folders = new Set([root, ...files.map(packageOf).filter((folder) => folder !== undefined)]);
  return [...folders].map(describePackage).join('\n');
}

function describeNode(): string {
  const above = dirname(dirname(process.execPath));
  const file = NODE_LICENCES.map((place) => join(above, place)).find((path) => existsSync(path));
  const address = `https://github.com/nodejs/node/blob/${process.version}/LICENSE`;
  return `${SEPARATOR}\nNode.js ${process.version}\n\n${file === undefined ? address : readFileSync(file, 'utf8').trim()}\n`;
}

function describePackage(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
  return [`${SEPARATOR}\n${name} ${version} (${license ?? 'no licence named'})\n`, ...texts, ''].join('\n');
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/** The folder of the installed package that a file belongs to; undefined for a file of this package. */
function packageOf(file: string): string | undefined {
  for (let folder = dirname(file); folder.includes('node_modules'); folder = dirname(folder)) {
    // A package may hold further manifests, which only say what kind of modules a folder has.
    const manifest = join(folder, 'package.json');
    if (existsSync(manifest) && 'version' in (JSON.parse(readFileSync(manifest, 'utf8')) as object)) return folder;
  }
  return undefined;
}
