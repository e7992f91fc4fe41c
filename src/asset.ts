/**
 * The files that the program reads beside its own code: the package's manifest and what the status page consists of. In a
 * one-file binary they are inside it, elsewhere where the package keeps them; readers need not know which.
 */
import { readFileSync } from 'node:fs';
import { getAsset, isSea } from 'node:sea';

/** Where each file is when it is not inside a binary; found only when asked for. */
const PLACES = {
  'package.json': () => new URL('../package.json', import.meta.url),
  'page.js': () => new URL('./admin/page/client/page.js', import.meta.url),
  'plots.js': () => new URL('./admin/page/client/plots.js', import.meta.url),
  'page.css': () => new URL('./admin/page/client/page.css', import.meta.url),
  'uPlot.js': () => new URL(import.meta.resolve('uplot/dist/uPlot.iife.min.js')),
  'uPlot.css': () => new URL(import.meta.resolve('uplot/dist/uPlot.min.css')),
} as const;

/** The closed set of names. */
export type AssetName = keyof typeof PLACES;

/** All names, for the tool that puts the files into a binary. */
export const ASSET_NAMES: readonly AssetName[] = Object.keys(PLACES) as AssetName[];

/** The file that a name stands for, outside a binary. */
export function locateAsset(name: AssetName): URL {
  return PLACES[name]();
}

/** @throws the file system's error when the file is missing, which means that the package is incomplete */
export function readAsset(name: AssetName): Buffer {
  return isSea() ? Buffer.from(getAsset(name)) : readFileSync(locateAsset(name));
}
