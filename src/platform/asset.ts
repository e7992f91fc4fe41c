/**
 * The files that the program reads beside its code: the package's manifest and the files of the status page. In a one-file binary they
 * are embedded, elsewhere they are files of the package or of a dependency.
 */
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { getAsset, isSea } from 'node:sea';
import { pathToFileURL } from 'node:url';

/** Their locations outside a binary; functions, because locating a file costs time. */
const ASSET_URLS = {
  'package.json': () => locateManifest(),
  'page.js': () => locateInProgram('admin/page/client/page.js'),
  'plots.js': () => locateInProgram('admin/page/client/plots.js'),
  'page.css': () => locateInProgram('admin/page/client/page.css'),
  'uPlot.js': () => new URL(import.meta.resolve('uplot/dist/uPlot.iife.min.js')),
  'uPlot.css': () => new URL(import.meta.resolve('uplot/dist/uPlot.min.css')),
} as const;

/** @throws Error when no folder above this file has a package.json: the package is incomplete */
function locateManifest(): URL {
  const path = findPackageJSON(import.meta.url);
  if (path === undefined) throw new Error(`no package.json lies above ${import.meta.url}`);
  return pathToFileURL(path);
}

/** A file of the package, such as `config/schema.json`; undefined in a one-file binary, which has no files. */
export function locateInPackage(path: string): URL | undefined {
  return isSea() ? undefined : new URL(path, locateManifest());
}

/** A file of the program: below `src/` in the source tree, below `dist/` in the package. */
function locateInProgram(path: string): URL {
  const root = new URL('.', locateManifest()).href;
  const [folder = ''] = import.meta.url.slice(root.length).split('/');
  return new URL(`${folder}/${path}`, root);
}

export type AssetName = keyof typeof ASSET_URLS;

/** For the tool that embeds the files in a binary. */
export const ASSET_NAMES: readonly AssetName[] = Object.keys(ASSET_URLS) as AssetName[];

export function locateAsset(name: AssetName): URL {
  return ASSET_URLS[name]();
}

/** @throws the file system's error when the file is missing: the package is incomplete */
export function readAsset(name: AssetName): Buffer {
  return isSea() ? Buffer.from(getAsset(name)) : readFileSync(locateAsset(name));
}

let version: string | undefined;

/** The version in package.json, which is read once; `unknown` when it states none. */
export function readProgramVersion(): string {
  return (version ??= readManifestVersion());
}

function readManifestVersion(): string {
  const manifest: unknown = JSON.parse(readAsset('package.json').toString());
  const hasVersion = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return hasVersion ? String(manifest.version) : 'unknown';
}
