/**
 * Proxies in front of a witness each: the sidecar, and the peers that it is compared with, in the plainest configuration
 * that forwards everything to one upstream and keeps connections to it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startNginx } from '../support/nginx.ts';
import { openSocket } from '../support/raw-client.ts';
import { startByteWitness } from './byte-witness.ts';
import type { ByteWitness } from './byte-witness.ts';
import { startBeforeWitness } from './sidecar-before-witness.ts';
import { freePort } from '../support/loopback.ts';

export interface Running extends AsyncDisposable {
  readonly url: string;
  readonly witness: ByteWitness;
}

export interface Contender {
  readonly name: string;
  start(): Promise<Running>;
}

const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  dependencies: Record<string, string>;
};

export const CONTENDERS: readonly Contender[] = [
  { name: 'bearer-sidecar', start: startSidecar },
  { name: versionOf('nginx', '-v', /nginx\/[\d.]+/), start: startNginxPeer },
  { name: versionOf('haproxy', '-v', /HAProxy version [\d.]+/), start: startHaproxy },
  { name: `http-proxy-3 ${dependencies['http-proxy-3'] ?? ''}`, start: startHttpProxy },
];

async function startSidecar(): Promise<Running> {
  const { sidecar, witness, ...rest } = await startBeforeWitness('bench-hostile');
  return { url: sidecar.proxyUrl, witness, ...rest };
}

async function startNginxPeer(): Promise<Running> {
  const witness = await startByteWitness();
  const nginx = await startNginx({ upstream: witness.url });
  return { url: nginx.url, witness, [Symbol.asyncDispose]: () => disposeAll(nginx, witness) };
}

async function startHaproxy(): Promise<Running> {
  const witness = await startByteWitness();
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'haproxy-'));
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(
    file,
    `defaults
  mode http
  timeout connect 5s
  timeout client 2s
  timeout http-request 2s
  timeout server 5s
frontend in
  bind 127.0.0.1:${port}
  default_backend witness
backend witness
  server witness ${new URL(witness.url).host}
`,
  );
  const peer = await startProcess('haproxy', ['-f', file, '-db'], port);
  const removeFolder = { [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }) };
  return { url: urlOf(port), witness, [Symbol.asyncDispose]: () => disposeAll(peer, witness, removeFolder) };
}

async function startHttpProxy(): Promise<Running> {
  const witness = await startByteWitness();
  const port = await freePort();
  const script = join(import.meta.dirname, 'http-proxy-3.child.ts');
  const peer = await startProcess(process.execPath, [script, String(port), witness.url], port);
  return { url: urlOf(port), witness, [Symbol.asyncDispose]: () => disposeAll(peer, witness) };
}

async function startProcess(command: string, args: readonly string[], port: number): Promise<AsyncDisposable> {
  const path = `${process.env.PATH ?? ''}:/usr/sbin`;
  const child = spawn(command, args, { env: { PATH: path }, stdio: 'ignore' });
  const ended = once(child, 'exit').catch((error: unknown) => error);
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  await untilItAccepts(command, port);
  return {
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
      process.off('exit', killAtExit);
    },
  };
}

async function untilItAccepts(command: string, port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const socket = await openSocket(urlOf(port)).catch(() => undefined);
    socket?.destroy();
    if (socket !== undefined) return;
    await sleep(50);
  }
  throw new Error(`${command} did not start; is it installed?`);
}

async function disposeAll(...all: readonly AsyncDisposable[]): Promise<void> {
  for (const each of all) await each[Symbol.asyncDispose]();
}

function versionOf(program: string, flag: string, pattern: RegExp): string {
  const { stdout, stderr } = spawnSync(program, [flag], {
    encoding: 'utf8',
    env: { PATH: `${process.env.PATH ?? ''}:/usr/sbin` },
  });
  return pattern.exec(`${stdout} ${stderr}`)?.[0] ?? program;
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${port}`;
}
