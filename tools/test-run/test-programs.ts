/**
 * The programs that the tests run and npm does not bring, such as nginx, Redis and chromium. Missing ones are installed where that is
 * possible (root on Debian) and `INSTALL_PROGRAMS` is not `false`; their services are not started.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, chmodSync, constants, existsSync, globSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { importsOf } from './test-imports.ts';

const CLIENTS = ['test/peers/client-stacks/stacks.ts', 'test/peers/broken-responses/clients.ts'];

const TEST_PROGRAMS: readonly TestProgram[] = [
  { program: 'nginx', package: 'nginx', startedBy: ['test/support/nginx.ts'] },
  { program: 'haproxy', package: 'haproxy', startedBy: ['test/support/haproxy.ts'] },
  {
    program: 'promtool',
    package: 'prometheus',
    startedBy: ['test/support/prometheus.ts', 'test/telemetry/fleet.test.ts', 'test/telemetry/metrics/metrics.test.ts'],
  },
  { program: 'prometheus', package: 'prometheus', startedBy: ['test/support/prometheus.ts'] },
  {
    program: 'curl',
    package: 'curl',
    startedBy: [
      ...CLIENTS,
      'test/commands/init/curl/partner-commands.test.ts',
      'test/commands/init/curl/real-curl.test.ts',
      'test/composition/llm-gateway.test.ts',
      'test/deploy/kubernetes-process.test.ts',
      'test/docs/commands.test.ts',
      'test/e2e/commands.test.ts',
      'test/listener/http2-local-reply.test.ts',
      'test/support/sandbox-certificate.ts',
    ],
  },
  {
    program: 'chromium-headless-shell',
    package: 'chromium-headless-shell',
    startedBy: ['test/support/chromium.ts'],
  },
  { program: 'redis-server', package: 'redis-server', startedBy: ['test/support/redis-server.ts'] },
  { program: 'tinyproxy', package: 'tinyproxy', startedBy: ['test/support/tinyproxy.ts'] },
  {
    program: 'kubectl',
    package: 'kubernetes-client',
    startedBy: ['test/support/kustomize.ts', 'test/deploy/kubernetes.test.ts'],
  },
  { program: 'systemd-analyze', package: 'systemd', startedBy: ['test/deploy/systemd.test.ts'] },
  { program: 'docker-compose', package: 'docker-compose', startedBy: ['test/deploy/image.test.ts'] },
  {
    program: 'openssl',
    package: 'openssl',
    startedBy: [
      'test/peers/partner-shapes/customer.ts',
      'test/support/certificates.ts',
      'test/support/openssl-server.ts',
      'test/token/endpoint/token-endpoint-tls.test.ts',
    ],
  },
  { program: 'readelf', package: 'binutils', startedBy: ['test/packaging/binary.test.ts'] },
  { program: 'script', package: 'bsdutils', startedBy: ['test/support/terminal.ts', 'test/e2e/reload.test.ts'] },
  {
    program: 'bash',
    package: 'bash',
    startedBy: [
      ...CLIENTS,
      'test/commands/init/curl/partner-commands.test.ts',
      'test/commands/init/curl/real-curl.test.ts',
      'test/e2e/commands.test.ts',
      'test/packaging/release-workflow.test.ts',
    ],
  },
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
  ].map((each) => ({ ...each, startedBy: CLIENTS })),
];

/** Debian's packages do not start their service when this file exists and ends with 101 (invoke-rc.d). */
const POLICY = '/usr/sbin/policy-rc.d';

interface DebianProgram {
  /** Its name; of a library, a pattern of its path. */
  readonly program: string;
  /** The name in Debian. */
  readonly package: string;
}

interface RequiredProgram extends DebianProgram {
  /** What fails without it. */
  readonly tests: string;
}

interface TestProgram extends DebianProgram {
  /** The modules of test/ that start it. */
  readonly startedBy: readonly string[];
}

/** @returns a line for each program that is still missing, with what fails without it */
export function installMissingPrograms(
  needed: readonly RequiredProgram[] = TEST_PROGRAMS.map((each) => ({ ...each, tests: 'tests' })),
): string[] {
  return findMissing(needed).map(
    ({ program, tests }) => `${program} is missing and was not installed; these fail without it: ${tests}`,
  );
}

/** @returns the programs of the tests that are still missing, each with the test files that need it */
export function installTestPrograms(root: string): { readonly program: string; readonly tests: readonly string[] }[] {
  return findMissing(TEST_PROGRAMS).map(({ program, startedBy }) => ({ program, tests: findTests(root, startedBy) }));
}

/** @returns the test files that are one of these modules or import it, directly or not */
export function findTests(root: string, modules: readonly string[]): string[] {
  const files = globSync('test/**/*.test.ts', { cwd: root }).toSorted();
  return files.filter((file) => {
    const imports = importsOf(root, file);
    return modules.some((module) => imports.has(module));
  });
}

function findMissing<T extends DebianProgram>(needed: readonly T[]): T[] {
  const missing = needed.filter(({ program }) => !isInstalled(program));
  if (missing.length > 0) install(missing.map((each) => each.package));
  return missing.filter(({ program }) => !isInstalled(program));
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
