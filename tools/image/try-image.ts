/**
 * `npm run image:test [-- --twice]`: builds the image without a registry and uses it as people would: the sandbox with a read-only
 * root and no rights at all, a call from a neighbour in its network, the health check, SIGTERM, the compose file. Prints sizes.
 * `--twice` builds everything again from nothing and compares.
 */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installMissingPrograms } from '../test-run/test-programs.ts';
import { buildBaseImage, readBaseImage } from './base-image.ts';
import { openPodman, type Podman } from './podman.ts';
import { reportSizes } from './sizes.ts';
import { tryCompose } from './try-compose.ts';
import { tryContainer } from './try-container.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(ROOT, 'node_modules', '.cache', 'image');
const IMAGE = 'bearer-sidecar:0.1.0';
const VERSION_LABEL = '{{index .Labels "org.opencontainers.image.version"}}';
const started = performance.now();

const REQUIRED_PROGRAMS = [
  { program: 'podman', package: 'podman' },
  { program: 'runc', package: 'runc' },
  { program: 'mmdebstrap', package: 'mmdebstrap' },
  // The network of a compose project; the first two are no commands, but beside the folder of commands.
  { program: '../lib/podman/netavark', package: 'netavark' },
  { program: '../lib/podman/aardvark-dns', package: 'aardvark-dns' },
  { program: 'iptables', package: 'iptables' },
  { program: 'docker-compose', package: 'docker-compose' },
].map((tool) => ({ ...tool, tests: 'npm run image:test' }));

/** The registry and the authority that this machine's npm uses, as secrets of the build. */
function buildSecrets(folder: string): string[] {
  const { HOME = '/root', NODE_EXTRA_CA_CERTS: authority } = process.env;
  const npmrc = join(folder, 'npmrc');
  writeFileSync(
    npmrc,
    `${readIfThere(join(HOME, '.npmrc'))}\n${authority === undefined ? '' : 'cafile=/run/secrets/ca\n'}`,
  );
  const ca = authority === undefined ? [] : ['--secret', `id=ca,src=${authority}`];
  return ['--secret', `id=npmrc,src=${npmrc}`, ...ca];
}

/** @returns the digests of the image's layers, which are its files; the rest has the builder's own random names in it */
function build(podman: Podman, secrets: readonly string[], ...more: string[]): string {
  // Docker's own format: OCI's has no health check.
  const isolated = ['--format', 'docker', '--network', 'host', '--isolation', 'chroot', '--pull-never'];
  podman.runPrinting('build', ...isolated, ...secrets, ...more, '--tag', IMAGE, ROOT);
  return podman.run('image', 'inspect', '--format', '{{.RootFS.Layers}}', IMAGE);
}

function readIfThere(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
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
  const secrets = buildSecrets(folder);
  const layers = build(podman, secrets);
  const version = podman.run('image', 'inspect', '--format', VERSION_LABEL, IMAGE);
  reportProgress(`built, labelled ${version}`);
  for (const line of reportSizes(podman, IMAGE, folder)) reportProgress(line);
  if (process.argv.includes('--twice')) {
    const again = build(podman, secrets, '--no-cache');
    if (again !== layers) throw new Error(`the layers were ${layers}, built again they are ${again}`);
    reportProgress('built again without a cache: the same layers, byte for byte');
  }
  await tryContainer(podman, IMAGE, reportProgress);
  await tryCompose(podman, join(ROOT, 'deploy', 'compose.yaml'), reportProgress);
}

const missing = installMissingPrograms(REQUIRED_PROGRAMS);
if (missing.length > 0) throw new Error(missing.join('\n'));
await tryImage();
reportProgress('all as promised');
