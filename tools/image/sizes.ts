/** The size of an image: on disk, and to pull, where each layer is compressed. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Podman } from './podman.ts';

interface Blob {
  readonly digest: string;
  readonly size: number;
}

const LAYERS = ['Node.js and libraries', 'packages', 'sidecar'];

/** @returns lines for people */
export function reportSizes(podman: Podman, image: string, folder: string): string[] {
  const disk = Number(podman.run('image', 'inspect', '--format', '{{.Size}}', image));
  const pushed = join(folder, 'pushed');
  podman.run('push', image, `oci:${pushed}`);
  const read = (file: string): unknown => JSON.parse(readFileSync(join(pushed, file), 'utf8'));
  const { manifests } = read('index.json') as { manifests: [Blob] };
  const { layers } = read(`blobs/${manifests[0].digest.replace(':', '/')}`) as { layers: Blob[] };
  const sizes = layers.map(({ size }) => size);
  rmSync(pushed, { recursive: true });
  const parts = sizes.map((size, index) => `${LAYERS[index] ?? 'no files'} ${inMegabytes(size)}`);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  return [`size: ${inMegabytes(disk)} on disk, ${inMegabytes(total)} to pull (gzip): ${parts.join(', ')}`];
}

/** `121.4 MB`, with a million bytes to the megabyte. */
export function inMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
