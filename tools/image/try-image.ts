/**
 * `npm run image:test [-- --twice]`: builds the image without a registry and uses it as people would: the sandbox with a read-only
 * root and no rights at all, a call from a neighbour in its network, the health check, SIGTERM, the compose file. Prints sizes.
 * `--twice` builds everything again from nothing and compares.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildBaseImage, readBaseImage } from './base-image.ts';
import { installBuilder, writeBuildOptions } from './builder.ts';
import { openPodman, type Podman } from './podman.ts';
import { reportSizes } from './sizes.ts';
import { tryCompose } from './try-compose.ts';
import { tryContainer } from './try-container.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(ROOT, 'node_modules', '.cache', 'image');
const IMAGE = 'bearer-sidecar:0.1.0';
const VERSION_LABEL = '{{index .Labels "org.opencontainers.image.version"}}';
const started = performance.now();

/** @returns the digests of the image's layers, which are its files; the rest has the builder's own random names in it */
function build(podman: Podman, options: readonly string[], ...more: string[]): string {
  podman.runPrinting('build', ...options, ...more, '--tag', IMAGE, ROOT);
  return podman.run('image', 'inspect', '--format', '{{.RootFS.Layers}}', IMAGE);
}

function reportProgress(text: string): void {
  console.log(`image: ${((performance.now() - started) / 1000).toFixed(0).padStart(3)} s  ${text}`);
}

async function tryImage(): Promise<void> {
  const base = readBaseImage(join(ROOT, 'Dockerfile'));
  const folder = mkdtempSync(join(tmpdir(), 'image-'));
  using podman = openPodman(folder);
  podman.run('import', buildBaseImage(base, CACHE), `docker.io/library/${base.image}`);
  reportProgress(`a stand-in for ${base.image}: Debian ${base.debian}, Node.js ${base.nodeVersion}`);
  const options = writeBuildOptions(folder);
  const layers = build(podman, options);
  const version = podman.run('image', 'inspect', '--format', VERSION_LABEL, IMAGE);
  reportProgress(`built, labelled ${version}`);
  for (const line of reportSizes(podman, IMAGE, folder)) reportProgress(line);
  if (process.argv.includes('--twice')) {
    const again = build(podman, options, '--no-cache');
    if (again !== layers) throw new Error(`the layers were ${layers}, built again they are ${again}`);
    reportProgress('built again without a cache: the same layers, byte for byte');
  }
  await tryContainer(podman, IMAGE, reportProgress);
  await tryCompose(podman, join(ROOT, 'deploy', 'compose.yaml'), reportProgress);
}

installBuilder('npm run image:test', [{ program: 'docker-compose', package: 'docker-compose' }]);
await tryImage();
reportProgress('all as promised');
