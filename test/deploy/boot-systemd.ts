/**
 * `npm run systemd:boot`: a systemd of its own, in namespaces of its own, starts the unit of deploy/systemd with every restriction
 * in it; the sidecar then serves a call, takes a reload and ends. Changed are the program (the sources, under the
 * Node.js of this run), the folder of its files and the ports. Needs root, Linux and systemd 250 or newer.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { post } from '../support/calls.ts';
import { freePort } from '../support/loopback.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { startTokenServer } from '../support/token-server.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const TIMEOUT_MS = 60_000;

if (process.getuid?.() !== 0) throw new Error('systemd:boot needs root: it makes namespaces and mounts of its own');

await using cleanup = new AsyncDisposableStack();
const folder = mkdtempSync(join(tmpdir(), 'boot-systemd-'));
cleanup.defer(() => {
  rmSync(folder, { recursive: true });
});
const tokens = cleanup.use(await startTokenServer());
const upstream = cleanup.use(await startRecordingUpstream());
const [proxyPort, adminPort] = [await freePort(), await freePort()];
prepare();
const systemd = boot();
cleanup.defer(() => void systemd.kill('SIGKILL'));
await check();
console.log('systemd started it, with every restriction of the unit; it served, took a reload and ended cleanly');

/** What root would put into /etc, and the unit. */
function prepare(): void {
  const { id, secret } = newCredential();
  writeFileSync(join(folder, 'client-id'), id, { mode: 0o600 });
  writeFileSync(join(folder, 'client-secret'), secret, { mode: 0o600 });
  const settings = {
    upstream: { baseUrl: upstream.url },
    auth: { url: tokens.url, audience: 'https://api.partner.example/' },
    listen: { address: `127.0.0.1:${String(proxyPort)}` },
    admin: { address: `127.0.0.1:${String(adminPort)}` },
  };
  writeFileSync(join(folder, 'config.yaml'), JSON.stringify(settings));
  const unit = readFileSync(join(ROOT, 'deploy', 'systemd', 'bearer-sidecar.service'), 'utf8')
    .replace('ExecStart=/usr/local/bin/bearer-sidecar', `ExecStart=${process.execPath} ${join(ROOT, 'src', 'main.ts')}`)
    .replaceAll('/etc/bearer-sidecar/', '/run/boot/')
    // Nothing but this one service is started.
    .replace('[Unit]', '[Unit]\nDefaultDependencies=no')
    .replace('[Service]', '[Service]\nStandardOutput=append:/run/output\nStandardError=append:/run/output');
  writeFileSync(join(folder, 'bearer-sidecar.service'), unit);
}

/** Every mount is made in a namespace that ends with it; `container` keeps systemd from setting up the machine. */
function boot(): ChildProcess {
  const script = `
    set -eu
    mount --make-rprivate /
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/systemd/system /run/boot
    cp ${folder}/client-* ${folder}/config.yaml /run/boot/
    chmod 0644 /run/boot/config.yaml
    cp ${folder}/bearer-sidecar.service /run/systemd/system/
    mount -t tmpfs -o mode=755 tmpfs /etc/systemd/system
    mount -t tmpfs -o mode=755 tmpfs /var/lib
    mkdir -m 0700 /var/lib/private
    mount --make-rshared /
    export container=other
    exec /lib/systemd/systemd --system --unit=bearer-sidecar.service --log-target=null --show-status=0
  `;
  const namespaces = ['--pid', '--fork', '--kill-child', '--mount', '--mount-proc', '--ipc', '--uts'];
  return spawn('unshare', [...namespaces, 'bash', '-c', script], { stdio: ['ignore', 'ignore', 'inherit'] });
}

async function check(): Promise<void> {
  await until('ready', async () => (await fetch(`http://127.0.0.1:${String(adminPort)}/readyz`)).ok);
  const status = inside('sh', '-c', 'cat /proc/$(systemctl show -p MainPID --value bearer-sidecar)/status');
  assert.match(status, /^Seccomp:\t2$/m);
  assert.match(status, /^CapBnd:\t0{16}$/m);
  assert.doesNotMatch(status, /^Uid:\t0\t/m);
  const response = await post(`http://127.0.0.1:${String(proxyPort)}/quotes`, { a: 1 });
  assert.equal(response.status, 200);
  assert.match(String(upstream.requests[0]?.headers.authorization), /^Bearer /);
  inside('systemctl', 'reload', 'bearer-sidecar');
  await until('reloaded', () => Promise.resolve(inside('cat', '/run/output').includes('"outcome":"ok"')));
  inside('systemctl', 'stop', 'bearer-sidecar');
  assert.match(inside('systemctl', 'show', '-p', 'Result', 'bearer-sidecar'), /Result=success/);
  console.log(inside('ls', '-ln', '/var/lib/private/bearer-sidecar').trim());
}

/** Runs a program where the new systemd is. */
function inside(...command: string[]): string {
  const pid = String(systemd.pid);
  const init = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  const { status, stdout, stderr } = spawnSync('nsenter', ['-t', init, '-m', '-p', ...command], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command.join(' ')}: ${stderr}`);
  return stdout;
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + TIMEOUT_MS;
  for (;;) {
    const reached = await isSo().catch((error: unknown) => {
      if (performance.now() > end) throw new Error(`not ${what}; ${inside('cat', '/run/output')}`, { cause: error });
      return false;
    });
    if (reached) return;
    if (performance.now() > end) throw new Error(`not ${what}: ${inside('cat', '/run/output')}`);
    await sleep(50);
  }
}
