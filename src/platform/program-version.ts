/** The version of this program, as its package states it. */
import { readAsset } from './asset.ts';

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
