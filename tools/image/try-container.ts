/** Uses the image as a pod would: nothing writable, no rights, one network for two; and says what it has seen. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Podman } from './podman.ts';

/** The strictest that a cluster asks for, and less memory than the manifests allow. */
const STRICT_OPTIONS = [
  '--read-only',
  '--read-only-tmpfs=false',
  '--cap-drop',
  'all',
  '--security-opt',
  'no-new-privileges',
];
const ISOLATED_OPTIONS = ['--network', 'none', '--memory', '256m'];
const NODE_ENTRYPOINT = ['--entrypoint', '/usr/local/bin/node'];
const EVAL_OPTIONS = ['--input-type=module', '--eval'];

/** Every runtime package is loaded once, since files were taken out of them. */
const LOAD_PACKAGES_SCRIPT = `
  const { dependencies } = JSON.parse(await process.getBuiltinModule('fs').promises.readFile('/app/package.json', 'utf8'));
  const names = Object.keys(dependencies).filter((name) => name !== 'uplot');
  for (const name of names) await import(name);
  console.log(names.length);`;

/** The status page with all that it links to. */
const loadPageScript = (url: string): string => `
  const page = await (await fetch('${url}/')).text();
  const linked = [...page.matchAll(/ (?:src|href)="(\\/[^"]+)"/g)].map(([, path]) => path);
  for (const path of linked) {
    const { status } = await fetch(new URL(path, '${url}'));
    if (status !== 200) throw new Error(path + ' responded with ' + status);
  }
  if (linked.length < 4) throw new Error('the page links to ' + linked.join(' '));
  console.log(linked.length);`;

/** From a second container in the same network, as the app would be. */
const callScript = (url: string): string => `
  const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: process.argv.at(-1) };
  const response = await fetch('${url}/quotes-requests', json);
  console.log(response.status, await response.text());`;

type ReportProgress = (text: string) => void;

/** @throws Error at the first promise that does not hold */
export async function tryContainer(podman: Podman, image: string, say: ReportProgress): Promise<void> {
  const started = performance.now();
  const container = podman.run('run', '--detach', ...STRICT_OPTIONS, ...ISOLATED_OPTIONS, image, 'sandbox');
  const proxyUrl = await readUrl(podman, container, 'proxy');
  say(`the sandbox answers ${(performance.now() - started).toFixed(0)} ms after podman run, as ${proxyUrl}`);

  const status = statusOf(podman, container);
  expectFields(status, { Uid: /^1000\t1000/, CapEff: /^0+$/, CapBnd: /^0+$/, NoNewPrivs: /^1$/, Seccomp: /^2$/ });
  const resident = Number.parseInt(status.VmRSS ?? '') / 1e3;
  say(`user 1000, no capabilities, read-only root; resident ${resident.toFixed(0)} MB`);

  await checkFromNeighbour(podman, image, container, say);
  const execute = (...args: string[]): string => podman.run('exec', container, 'bearer-sidecar', ...args);
  const version = execute('--version');
  execute('health', 'ready');
  say(`exec bearer-sidecar --version: ${version}; health ready: exit 0`);
  const begun = performance.now();
  await untilHealthy(podman, container);
  say(`HEALTHCHECK: healthy, in ${(performance.now() - begun).toFixed(0)} ms`);

  podman.run('stop', '--time', '10', container);
  const code = podman.run('wait', container);
  if (code !== '0') throw new Error(`SIGTERM ended it with ${code}`);
  podman.run('rm', container);
  say('SIGTERM: exit 0');

  await tryArbitraryUser(podman, image, say);
  checkContents(podman, image, say);
  await tryPublished(podman, image, say);
}

/** As OpenShift's restricted-v2 starts it: a user that the image does not know, and group 0. */
async function tryArbitraryUser(podman: Podman, image: string, say: ReportProgress): Promise<void> {
  const user = ['--user', '1000650000:0'];
  const container = podman.run('run', '--detach', ...user, ...STRICT_OPTIONS, ...ISOLATED_OPTIONS, image, 'sandbox');
  await readUrl(podman, container, 'proxy');
  expectFields(statusOf(podman, container), { Uid: /^1000650000\t/, Gid: /^0\t/, CapEff: /^0+$/ });
  await untilHealthy(podman, container);
  podman.run('stop', '--time', '10', container);
  const code = podman.run('wait', container);
  if (code !== '0') throw new Error(`as an arbitrary user it ended with ${code}`);
  podman.run('rm', container);
  say('user 1000650000, group 0: serves, healthy, exit 0');
}

/** What the app in the same pod sees, and a person at the status page. */
async function checkFromNeighbour(
  podman: Podman,
  image: string,
  container: string,
  say: ReportProgress,
): Promise<void> {
  const evaluate = (code: string, ...args: string[]): string =>
    podman.run(
      'run',
      '--rm',
      ...STRICT_OPTIONS,
      '--network',
      `container:${container}`,
      ...NODE_ENTRYPOINT,
      image,
      ...EVAL_OPTIONS,
      code,
      ...args,
    );
  const body = readSample(podman, container);
  const output = evaluate(callScript(await readUrl(podman, container, 'proxy')), body);
  if (!/^2\d\d .*"simulated":true/.test(output)) throw new Error(`a neighbour received: ${output}`);
  say(`a neighbour in the same network: ${output}`);
  const linked = evaluate(loadPageScript(await readUrl(podman, container, 'admin')));
  say(`the status page and the ${linked} files that it links to are there`);
}

function checkContents(podman: Podman, image: string, say: ReportProgress): void {
  const loaded = podman.run(
    'run',
    '--rm',
    ...STRICT_OPTIONS,
    ...NODE_ENTRYPOINT,
    image,
    ...EVAL_OPTIONS,
    LOAD_PACKAGES_SCRIPT,
  );
  say(`all ${loaded} runtime packages load`);
  const shell = podman.tryRun('run', '--rm', '--entrypoint', '/bin/sh', image, '-c', 'true');
  if (shell.code === 0) throw new Error('there is a shell in the image');
  const idle = podman.tryRun('run', '--rm', ...STRICT_OPTIONS, image);
  if (idle.code !== 2 || !idle.stderr.includes('SIDECAR_BASE_URL'))
    throw new Error(`without settings it ended with ${String(idle.code)}: ${idle.stderr}`);
  say('no shell; without settings exit 2, and what is missing is named');
}

/** As on a laptop: a port of the container on this machine's loopback. */
async function tryPublished(podman: Podman, image: string, say: ReportProgress): Promise<void> {
  const open = ['SIDECAR_LISTEN=0.0.0.0:18080', 'SIDECAR_LISTEN_ALLOW_UNAUTHENTICATED_NETWORK=true'];
  const settings = open.flatMap((setting) => ['--env', setting]);
  const container = podman.run('run', '--detach', '--publish', '127.0.0.1::18080', ...settings, image, 'sandbox');
  await readUrl(podman, container, 'proxy');
  const address = podman.run('port', container, '18080');
  const { status } = await fetch(`http://${address}/nothing-here`);
  if (status !== 404) throw new Error(`${address} responded with ${String(status)}`);
  podman.run('rm', '--force', '--time', '1', container);
  say('a published port answers');
}

async function readUrl(podman: Podman, container: string, port: 'proxy' | 'admin'): Promise<string> {
  for (let tries = 0; tries < 1200; tries++) {
    const url = new RegExp(`^${port} (\\S+)$`, 'm').exec(podman.tryRun('logs', container).stdout)?.[1];
    if (url !== undefined) return url;
    await delay(50);
  }
  throw new Error(`no address within 60 s:\n${podman.tryRun('logs', container).stderr}`);
}

/** Podman leaves health checks to systemd, which does not run here. */
export async function untilHealthy(podman: Podman, container: string): Promise<void> {
  for (let tries = 0; tries < 50; tries++) {
    if (podman.tryRun('healthcheck', 'run', container).code === 0) return;
    await delay(200);
  }
  throw new Error(`not healthy after 50 checks:\n${podman.tryRun('logs', container).stderr}`);
}

/** The body of the call that the sandbox says to try. */
function readSample(podman: Podman, container: string): string {
  const body = /^try .* -d '([^']+)'/m.exec(podman.run('logs', container))?.[1];
  if (body === undefined) throw new Error('the sandbox printed no call to try');
  return body;
}

/** /proc/PID/status of a container's first process. */
function statusOf(podman: Podman, container: string): Record<string, string> {
  const pid = podman.run('inspect', '--format', '{{.State.Pid}}', container);
  const lines = readFileSync(`/proc/${pid}/status`, 'utf8').trim().split('\n');
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf('\t') + 1)]),
  );
}

function expectFields(status: Readonly<Record<string, string>>, fields: Readonly<Record<string, RegExp>>): void {
  for (const [name, form] of Object.entries(fields))
    if (!form.test(status[name] ?? ''))
      throw new Error(`${name} is ${status[name] ?? 'not stated'}, not ${form.source}`);
}
