/** Loads that ask for more than the machine gives: what becomes of the sidecar, of its probes and of each request. Linux only. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readImageFlags, readImageMemory } from '../../tools/image/image-flags.ts';
import { MAIN } from '../support/main-file.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { processMemory } from '../support/process-memory.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { Environment, RunningSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

/** What the sidecar is given. */
export interface MachineLimits {
  /** Of Node.js, before the program. Default: none. */
  readonly flags?: readonly string[];
  readonly env?: Environment;
  /** Soft limit of descriptors. Default: this process's own. */
  readonly descriptors?: number;
  /** Of a memory cgroup. Default: none. */
  readonly memoryBytes?: number;
}

/** As the image starts it. */
export const IMAGE_LIMITS: MachineLimits = { flags: readImageFlags(), env: readImageMemory() };

export interface ClientLoad {
  readonly kind:
    | 'posts'
    | 'heads'
    | 'idle'
    | 'bodies'
    | 'pipeline-get'
    | 'pipeline-post'
    | 'flood'
    | 'flood-read'
    | 'fields'
    | 'fields-partial';
  readonly port?: 'proxy' | 'admin';
  readonly count: number;
  /** Bytes of a body or packet, requests on a connection, or fields of a head. */
  readonly size?: number;
  readonly path?: string;
  /** How long the clients stay, milliseconds. Default 3000. */
  readonly staysMs?: number;
  /** How long the upstream takes for a response, milliseconds. Default 100. */
  readonly upstreamMs?: number;
}

export interface LoadResult {
  readonly isAlive: boolean;
  readonly peakBytes: number;
  /** Of the clients: how many connections, or responses by status. */
  readonly clients: Readonly<Record<string, number>>;
  /** Of 50 requests for /livez beside the load, each on a connection of its own. */
  readonly pingResponses: number;
  /** Of those that got a response, milliseconds. */
  readonly pingMs: { readonly p50: number; readonly max: number };
  readonly log: string;
  readonly stderr: string;
}

const PINGS = 50;
const PING_TIMEOUT_MS = 1000;
const UPSTREAM_MS = 100;
const CGROUPS = '/sys/fs/cgroup/memory';

/** Starts a sidecar on that machine, loads it, and looks. */
export async function runLoad(name: string, machine: MachineLimits, load: ClientLoad): Promise<LoadResult> {
  await using cleanup = new AsyncDisposableStack();
  const tokens = cleanup.use(await startTokenServer());
  const upstream = cleanup.use(
    await startRecordingUpstream(async (_request, response) => {
      await sleep(load.upstreamMs ?? UPSTREAM_MS);
      response.end('{}');
    }),
  );
  const program = shellCommand(name, machine);
  cleanup.defer(() => removeCgroup(name));
  const env = { ...baseSettings(upstream.url, tokens.url, newCredential()), ...machine.env };
  const sidecar = cleanup.use(await startSidecar({ name: `soak-budgets-${name}`, env, program }));
  await waitUntilReady(sidecar);
  const { clients, pings } = await applyLoad(load, sidecar);
  await sleep(200);
  const isAlive = existsSync(`/proc/${sidecar.pid}/exe`);
  const peakBytes = isAlive ? processMemory(sidecar.pid, 'VmHWM') : NaN;
  const times = pings.toSorted((a, b) => a - b);
  const pingMs = { p50: times[times.length >> 1] ?? NaN, max: times.at(-1) ?? NaN };
  const printed = { log: sidecar.stdout(), stderr: sidecar.stderr() };
  return { isAlive, peakBytes, clients, pingResponses: times.length, pingMs, ...printed };
}

/** The shell keeps the limits for the program that it becomes. */
export function shellCommand(
  name: string,
  { flags = [], descriptors, memoryBytes }: MachineLimits,
): readonly [string, ...string[]] {
  const main = join(import.meta.dirname, '..', '..', MAIN);
  const steps = [];
  if (descriptors !== undefined) steps.push(`ulimit -n ${descriptors}`);
  if (memoryBytes !== undefined) steps.push(`echo $$ > ${makeCgroup(name, memoryBytes)}/cgroup.procs`);
  const node = process.env.SOAKED_NODE ?? process.execPath;
  return ['/bin/sh', '-c', [...steps, 'exec "$0" "$@"'].join(' && '), node, ...flags, main];
}

function makeCgroup(name: string, bytes: number): string {
  const path = join(CGROUPS, `bearer-sidecar-${name}`);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'memory.limit_in_bytes'), String(bytes));
  return path;
}

export function removeCgroup(name: string): void {
  const path = join(CGROUPS, `bearer-sidecar-${name}`);
  if (existsSync(path)) rmdirSync(path);
}

async function applyLoad(
  { kind, port = 'proxy', count, size = 0, path, staysMs = 3000 }: ClientLoad,
  sidecar: RunningSidecar,
) {
  const url = port === 'proxy' ? sidecar.proxyUrl : sidecar.adminUrl;
  const args = [join(import.meta.dirname, 'budgets.child.ts'), kind, url, String(count), String(size)];
  if (path !== undefined) args.push(path);
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const isDone = Promise.race([once(child.stdout, 'data'), ended]);
  if (kind !== 'posts') await isDone;
  const pings = await pingAll(sidecar.adminUrl);
  await isDone;
  if (kind !== 'posts') await sleep(staysMs);
  child.stdin.end();
  await ended;
  return { clients: JSON.parse(printed) as Record<string, number>, pings };
}

/** The times of those that got a response. */
async function pingAll(adminUrl: string): Promise<number[]> {
  const times: number[] = [];
  for (let count = 0; count < PINGS; count++) {
    const startedAt = performance.now();
    if (await ping(adminUrl)) times.push(performance.now() - startedAt);
    await sleep(20);
  }
  return times;
}

/** On a connection of its own, as a kubelet asks. */
function ping(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    const finish = (hasResponse: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(hasResponse);
    };
    const timer = setTimeout(finish, PING_TIMEOUT_MS, false);
    socket.on('error', () => finish(false)).on('close', () => finish(false));
    socket.once('data', (bytes) => finish(bytes.toString('latin1').startsWith('HTTP/1.1 200')));
    socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  });
}
