/**
 * A stand-in for the public image of Node.js that the Dockerfile begins with, for machines that reach no registry of images: a
 * minimal Debian of the same release, the Node.js that npm ci has brought, and npm.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** What the Dockerfile asks for. */
export interface BaseImage {
  /** Such as `node:26.10.0-bookworm-slim`. */
  readonly image: string;
  readonly nodeVersion: string;
  readonly debian: string;
}

/** @throws Error when the Dockerfile's default is of another form */
export function readBaseImage(dockerfile: string): BaseImage {
  const [, image, nodeVersion, debian] =
    /^ARG NODE_IMAGE=(node:([\d.]+)-([a-z]+)-slim)$/m.exec(readFileSync(dockerfile, 'utf8')) ?? [];
  if (image === undefined || nodeVersion === undefined || debian === undefined)
    throw new Error(`${dockerfile}: expected ARG NODE_IMAGE=node:VERSION-RELEASE-slim`);
  return { image, nodeVersion, debian };
}

/**
 * @param cache a folder that may hold the file from an earlier run
 * @returns a tar file of the root file system
 */
export function buildBaseImage({ nodeVersion, debian }: BaseImage, cache: string): string {
  const file = resolve(cache, `base-${nodeVersion}-${debian}-${process.arch}.tar`);
  if (existsSync(file)) return file;
  if (nodeVersion !== process.versions.node)
    throw new Error(`the Dockerfile wants Node.js ${nodeVersion}, this is ${process.versions.node}`);
  mkdirSync(cache, { recursive: true });
  const nodeHome = resolve(dirname(process.execPath), '..');
  const npm = resolve(dirname(realpathSync(which('npm'))), '..');
  const hooks = [
    'mkdir -p "$1"/usr/local/bin "$1"/usr/local/lib/node_modules',
    `copy-in ${process.execPath} /usr/local/bin`,
    `copy-in ${join(nodeHome, 'LICENSE')} /usr/local`,
    `copy-in ${npm} /usr/local/lib/node_modules`,
    'ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1"/usr/local/bin/npm',
  ].map((hook) => `--customize-hook=${hook}`);
  const packages = '--include=libatomic1,libstdc++6';
  const unfinished = `${file}.unfinished.tar`;
  execFileSync('mmdebstrap', ['--quiet', '--variant=essential', packages, ...hooks, debian, unfinished], {
    stdio: ['ignore', 2, 2],
  });
  renameSync(unfinished, file);
  return file;
}

function which(program: string): string {
  return execFileSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim();
}
