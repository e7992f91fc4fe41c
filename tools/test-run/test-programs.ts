/**
 * The programs that the tests run and npm does not bring, such as nginx, Redis and chromium. Missing ones are installed where that is
 * possible (root on Debian) and `INSTALL_PROGRAMS` is not `false`; their services are not started.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, chmodSync, constants, existsSync, globSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const TEST_PROGRAMS = [
  { program: 'nginx', package: 'nginx', tests: 'test/e2e/nginx.test.ts' },
  { program: 'haproxy', package: 'haproxy', tests: 'npm run bench:hostile' },
  { program: 'promtool', package: 'prometheus', tests: 'test/telemetry, test/deploy' },
  { program: 'prometheus', package: 'prometheus', tests: 'test/deploy/{alerts,dashboard,metrics}.test.ts' },
  { program: 'curl', package: 'curl', tests: 'test/e2e/commands.test.ts, test/docs' },
  {
    program: 'chromium-headless-shell',
    package: 'chromium-headless-shell',
    tests: 'test/e2e/{browser,status-page}.test.ts',
  },
  { program: 'redis-server', package: 'redis-server', tests: 'test/fleet' },
  { program: 'tinyproxy', package: 'tinyproxy', tests: 'test/e2e/egress-proxy.test.ts' },
  { program: 'kubectl', package: 'kubernetes-client', tests: 'test/deploy/kubernetes.test.ts' },
  { program: 'systemd-analyze', package: 'systemd', tests: 'test/deploy/systemd.test.ts' },
  { program: 'docker-compose', package: 'docker-compose', tests: 'test/deploy/image.test.ts' },
  { program: 'openssl', package: 'openssl', tests: 'the tests that speak TLS' },
  { program: 'readelf', package: 'binutils', tests: 'test/packaging/binary.test.ts' },
  { program: 'script', package: 'bsdutils', tests: 'the tests that need a terminal' },
  { program: 'bash', package: 'bash', tests: 'test/packaging/release-workflow.test.ts' },
  ...[
    { program: 'javac', package: 'default-jdk-headless' },
    { program: '/usr/share/java/commons-httpclient.jar', package: 'libcommons-httpclient-java' },
    { program: 'go', package: 'golang-go' },
    { program: 'ruby', package: 'ruby' },
    { program: 'wget', package: 'wget' },
    { program: 'php', package: 'php-cli' },
    { program: '/usr/lib/php/*/curl.so', package: 'php-curl' },
    { program: '/usr/lib/php/*/soap.so', package: 'php-soap' },
    { program: '/usr/share/perl5/LWP.pm', package: 'libwww-perl' },
    ...['requests', 'httpx', 'aiohttp', 'zeep'].map((module) => ({
      program: `/usr/lib/python3/dist-packages/${module}`,
      package: `python3-${module}`,
    })),
  ].map((each) => ({ ...each, tests: 'test/peers/{client-stacks,client-cookies,broken-responses}.test.ts' })),
];

/** Debian's packages do not start their service when this file exists and ends with 101 (invoke-rc.d). */
const POLICY = '/usr/sbin/policy-rc.d';

interface RequiredProgram {
  /** Its name; of a library, a pattern of its path. */
  readonly program: string;
  /** The name in Debian. */
  readonly package: string;
  /** What fails without it. */
  readonly tests: string;
}

/** @returns a line for each program that is still missing, with the tests that fail without it */
export function installMissingPrograms(needed: readonly RequiredProgram[] = TEST_PROGRAMS): string[] {
  const missing = needed.filter(({ program }) => !isInstalled(program));
  if (missing.length > 0) install(missing.map((each) => each.package));
  return missing
    .filter(({ program }) => !isInstalled(program))
    .map(({ program, tests }) => `${program} is missing and was not installed; these fail without it: ${tests}`);
}

function install(packages: readonly string[]): void {
  if (process.getuid?.() !== 0 || !isInstalled('apt-get') || process.env.INSTALL_PROGRAMS === 'false') return;
  console.error(
    `!!! apt-get installs ${packages.join(', ')} and what these depend on, up to a hundred Debian packages. INSTALL_PROGRAMS=false prevents it.`,
  );
  const ownPolicy = !existsSync(POLICY);
  if (ownPolicy) {
    writeFileSync(POLICY, '#!/bin/sh\nexit 101\n');
    chmodSync(POLICY, 0o755);
  }
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  // apt's report goes to stderr: stdout ends with the totals.
  const aptGet = (...args: string[]): void => {
    spawnSync('apt-get', args, { env, stdio: ['ignore', 2, 2] });
  };
  aptGet('-q', 'update');
  aptGet('-q', 'install', '-y', '--no-install-recommends', ...packages);
  if (ownPolicy) rmSync(POLICY);
}

function isInstalled(program: string): boolean {
  if (program.startsWith('/')) return globSync(program).length > 0;
  return [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin'].some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
