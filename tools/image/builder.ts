/** What this machine needs to build the image without a registry and to start it, and how it is built here. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installMissingPrograms } from '../test-run/test-programs.ts';

interface DebianProgram {
  readonly program: string;
  readonly package: string;
}

const PROGRAMS: readonly DebianProgram[] = [
  { program: 'podman', package: 'podman' },
  { program: 'runc', package: 'runc' },
  { program: 'mmdebstrap', package: 'mmdebstrap' },
  // The network of containers; the first two are no commands, but beside the folder of commands.
  { program: '../lib/podman/netavark', package: 'netavark' },
  { program: '../lib/podman/aardvark-dns', package: 'aardvark-dns' },
  { program: 'iptables', package: 'iptables' },
];

/**
 * Installs what is missing where that is possible (root on Debian).
 * @param command what fails without it
 * @throws Error that names what is still missing
 */
export function installBuilder(command: string, more: readonly DebianProgram[]): void {
  const missing = installMissingPrograms([...PROGRAMS, ...more].map((each) => ({ ...each, tests: command })));
  if (missing.length > 0) throw new Error(missing.join('\n'));
}

/**
 * The registry and the authority that this machine's npm uses become secrets of the build.
 * @param folder of the secrets
 * @returns options of `podman build`
 */
export function writeBuildOptions(folder: string): string[] {
  const { HOME = '/root', NODE_EXTRA_CA_CERTS: authority } = process.env;
  const own = join(HOME, '.npmrc');
  const npmrc = join(folder, 'npmrc');
  const settings = existsSync(own) ? readFileSync(own, 'utf8') : '';
  writeFileSync(npmrc, `${settings}\n${authority === undefined ? '' : 'cafile=/run/secrets/ca\n'}`, { mode: 0o600 });
  const ca = authority === undefined ? [] : ['--secret', `id=ca,src=${authority}`];
  // Docker's own format: OCI's has no health check.
  const isolated = ['--format', 'docker', '--network', 'host', '--isolation', 'chroot', '--pull-never'];
  return [...isolated, '--secret', `id=npmrc,src=${npmrc}`, ...ca];
}
