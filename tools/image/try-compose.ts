/**
 * Starts the compose project's app and sidecar as `docker-compose up` does, in front of the sandbox, and looks whether calls go
 * through and whether a Prometheus under the compose network's names would be answered. Its and Grafana's images are not started:
 * they come from a registry.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Podman } from './podman.ts';
import { untilHealthy } from './try-container.ts';

const PROJECT = 'trial';
const SIDECAR = `${PROJECT}_sidecar_1`;
const APP = `${PROJECT}_app_1`;

const SCRAPE_SCRIPT = `
  const { status } = await fetch('http://sidecar:19464/metrics');
  console.log(status);`;

/** @throws Error when it does not run as the file says */
export async function tryCompose(podman: Podman, file: string, say: (text: string) => void): Promise<void> {
  const statusPort = String(await findFreePort());
  const env = {
    ...process.env,
    DOCKER_HOST: await podman.startService(),
    SIDECAR_COMMAND: 'sandbox',
    STATUS_PORT: statusPort,
  };
  const compose = (...args: string[]): void => {
    const all = ['--project-name', PROJECT, '--file', file, ...args];
    const { status, stdout, stderr } = spawnSync('docker-compose', all, { env, encoding: 'utf8' });
    if (status !== 0) throw new Error(`docker-compose ${all.join(' ')}: ${String(status)}\n${stdout}${stderr}`);
  };
  compose('config', '--quiet');
  compose('up', '--detach', '--no-build', '--no-deps', 'sidecar');
  await untilHealthy(podman, SIDECAR);
  compose('up', '--detach', '--no-build', '--no-deps', 'app');
  say('compose: the sidecar is healthy, the app is started');

  const statuses = await readStatuses(podman);
  say(`compose: the app's calls returned ${statuses.join(', ')}`);
  const image = podman.run('inspect', '--format', '{{.ImageName}}', SIDECAR);
  const neighbour = ['run', '--rm', '--network', `${PROJECT}_default`, '--entrypoint', '/usr/local/bin/node', image];
  const scraped = podman.run(...neighbour, '--input-type=module', '--eval', SCRAPE_SCRIPT);
  if (scraped !== '200') throw new Error(`sidecar:19464/metrics responded with ${scraped}`);
  say('compose: /metrics answers under the name sidecar');

  const { ok } = await fetch(`http://localhost:${statusPort}/status`);
  if (!ok) throw new Error('the status page is not there for a browser of this machine');
  say(`compose: the status page is there on this machine's loopback, port ${statusPort}`);

  // podman does not remove a container whose network another one uses, as `down` wants at once: the end removes them.
  compose('stop', '--timeout', '30');
  const codes = [SIDECAR, APP].map((name) => podman.run('inspect', '--format', '{{.State.ExitCode}}', name));
  if (codes.some((code) => code !== '0')) throw new Error(`docker-compose stop ended them with ${codes.join(' and ')}`);
  say('compose: stopped, both exit 0');
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** What the app has printed, a status a line, once there are three. */
async function readStatuses(podman: Podman): Promise<string[]> {
  for (let tries = 0; tries < 300; tries++) {
    const lines = podman.tryRun('logs', APP).stdout.trim().split('\n');
    if (lines.length >= 3) {
      if (lines.every((line) => /^\d{3}$/.test(line))) return lines;
      throw new Error(`the app printed:\n${lines.join('\n')}`);
    }
    await delay(200);
  }
  throw new Error('the app printed nothing within 60 s');
}
