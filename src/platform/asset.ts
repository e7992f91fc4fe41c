/**
 * The files that the program reads beside its own code: the package's manifest and what the status page consists of. In a
 * one-file binary they are inside it, elsewhere where the package keeps them; readers need not know which.
 */
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { getAsset, isSea } from 'node:sea';
import { pathToFileURL } from 'node:url';

/** Where each file is when it is not inside a binary; found only when asked for. */
const ASSET_URLS = {
  'package.json': () => manifest(),
  'page.js': () => inProgram('admin/page/client/page.js'),
  'plots.js': () => inProgram('admin/page/client/plots.js'),
  'page.css': () => inProgram('admin/page/client/page.css'),
  'uPlot.js': () => new URL(import.meta.resolve('uplot/dist/uPlot.iife.min.js')),
  'uPlot.css': () => new URL(import.meta.resolve('uplot/dist/uPlot.min.css')),
} as const;

/** @throws Error when no package.json lies above this file, which means that the package is incomplete */
function manifest(): URL {
  const path = findPackageJSON(import.meta.url);
  if (path === undefined) throw new Error(`no package.json lies above ${import.meta.url}`);
  return pathToFileURL(path);
}

/** A file of the program: below `src/` in the source tree, and below `dist/` in the package. */
function inProgram(path: string): URL {
  const root = new URL('.', manifest()).href;
  const [folder = ''] = import.meta.url.slice(root.length).split('/');
  return new URL(`${folder}/${path}`, root);
}

/** The closed set of names. */
export type AssetName = keyof typeof ASSET_URLS;

/** All names, for the tool that puts the files into a binary. */
export const ASSET_NAMES: readonly AssetName[] = Object.keys(ASSET_URLS) as AssetName[];

/** The file that a name stands for, outside a binary. */
export function locateAsset(name: AssetName): URL {
  return ASSET_URLS[name]();
}

/** @throws the file system's error when the file is missing, which means that the package is incomplete */
export function readAsset(name: AssetName): Buffer {
  return isSea() ? Buffer.from(getAsset(name)) : readFileSync(locateAsset(name));
}
