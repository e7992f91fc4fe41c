/**
 * How many bytes V8 allocates for one request: of the built program with default settings, and of the bare pass-through. No noise touches the
 * figure, except for what V8 allocates to compile.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { devNull, tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../support/loopback.ts';
import { newCredential } from '../../support/secrets.ts';
import { baseSettings } from '../../support/sidecar-process.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { waitUntilResponding } from '../speed/ready.ts';
import { sendAll } from './closed-loop.ts';
import { startPlainUpstream } from './plain-upstream.ts';

const WARM_UP_CALLS = 20_000;
const CALLS = 20_000;

export interface Allocations {
  readonly get: number;
  readonly post: number;
}

/** @param main the built `main.js` */
export async function measureAllocations(main: string): Promise<{ sidecar: Allocations; bare: Allocations }> {
  await using tokens = await startTokenServer();
  await using upstream = await startPlainUpstream(Infinity);
  const folder = mkdtempSync(join(tmpdir(), 'allocations-'));
  try {
    const [port, adminPort, barePort] = [await freePort(), await freePort(), await freePort()];
    const log = openSync(join(folder, 'log'), 'a');
    const sidecar = start([main], log, {
      ...baseSettings(upstream.url, tokens.url, newCredential()),
      SIDECAR_LISTEN: `127.0.0.1:${String(port)}`,
      SIDECAR_ADMIN_LISTEN: `127.0.0.1:${String(adminPort)}`,
    });
    const bare = start([join(import.meta.dirname, '..', 'speed', 'proxies', 'bare.child.ts')], log, {
      PROXY_PORT: String(barePort),
      PROXY_UPSTREAM: upstream.url,
      PROXY_AUTHORIZATION: 'Bearer tok-0123456789abcdefABCDEFGH',
      PROXY_CONNECTIONS: '64',
      // An upstream without TLS needs no authority.
      PROXY_CA_FILE: devNull,
    });
    try {
      await waitUntilResponding(`http://127.0.0.1:${String(adminPort)}/readyz`, () => sidecar.exitCode !== null);
      await waitUntilResponding(`http://127.0.0.1:${String(barePort)}/item`, () => bare.exitCode !== null);
      return { sidecar: await measure(sidecar, port), bare: await measure(bare, barePort) };
    } finally {
      sidecar.kill('SIGKILL');
      bare.kill('SIGKILL');
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function start(program: readonly string[], log: number, env: Readonly<Record<string, string>>): ChildProcess {
  const args = ['--import', join(import.meta.dirname, 'report-allocations.ts'), ...program];
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? '', NODE_ENV: 'production', ...env },
    stdio: ['ignore', log, 'inherit', 'ipc'],
  });
  process.once('exit', () => child.kill('SIGKILL'));
  return child;
}

async function measure(child: ChildProcess, port: number): Promise<Allocations> {
  const url = `http://127.0.0.1:${String(port)}`;
  const figures = { get: NaN, post: NaN };
  for (const method of ['GET', 'POST'] as const) {
    await sendAll(url, method, WARM_UP_CALLS);
    const before = await readBytes(child);
    await sendAll(url, method, CALLS);
    figures[method === 'GET' ? 'get' : 'post'] = ((await readBytes(child)) - before) / CALLS;
  }
  return figures;
}

async function readBytes(child: ChildProcess): Promise<number> {
  const reply = once(child, 'message');
  child.send('read');
  const [bytes] = (await reply) as [number];
  return bytes;
}
