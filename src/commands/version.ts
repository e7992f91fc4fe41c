/** Which version this is: what the package's manifest says, so that it is written down once. */
import { readAsset } from '../platform/asset.ts';

/** @returns the version alone, such as `1.2.3`; `unknown` when the manifest names none */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readAsset('package.json').toString());
  const hasVersion = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return hasVersion ? String(manifest.version) : 'unknown';
}
