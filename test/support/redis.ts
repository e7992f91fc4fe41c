/**
 * A real Redis on a free port of 127.0.0.1, which keeps nothing on disk. It can be hung (SIGSTOP), killed and started again on the
 * same port, and asked and watched over a connection of the test's own.
 */
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@redis/client';
import { onTestFinished } from 'vitest';
import { freePort } from './loopback.ts';

export interface RedisOptions {
  /** Further arguments of redis-server. */
  readonly args?: readonly string[];
  /** Default: `redis://127.0.0.1:PORT`. */
  readonly url?: (port: number) => string;
}

export interface Redis extends AsyncDisposable {
  readonly port: number;
  /** As `SIDECAR_REDIS_URL` takes it. */
  readonly url: string;
  /** Sends a command on a connection of its own. */
  command(...command: string[]): Promise<unknown>;
  /** Has it answer a PING of another process; this one does nothing until then. */
  waitForPingOfOtherProcess(): void;
  /** Every key with everything in it, as text. */
  dump(): Promise<string>;
  /** SIGSTOP: it takes connections and answers nothing. */
  pause(): void;
  resume(): void;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** After `kill`: an empty one on the same port. */
  restart(): Promise<void>;
}

export async function startRedis(options: RedisOptions = {}): Promise<Redis> {
  const port = await freePort();
  const url = options.url?.(port) ?? `redis://127.0.0.1:${port}`;
  let child = await launch(port, options.args ?? []);
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  const command = async (...args: string[]): Promise<unknown> => {
    const client = createClient({ url, RESP: 2, socket: { reconnectStrategy: false } });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return await client.sendCommand(args);
    } finally {
      client.destroy();
    }
  };
  onTestFinished(kill);
  return {
    port,
    url,
    command,
    waitForPingOfOtherProcess() {
      const ping = `require('net').connect(${port}, '127.0.0.1').once('data', () => process.exit(0)).write('PING\\r\\n')`;
      execFileSync(process.execPath, ['-e', ping]);
    },
    async dump() {
      const lines = [];
      for (const key of (await command('KEYS', '*')) as string[]) {
        const type = (await command('TYPE', key)) as string;
        const value = await (type === 'hash' ? command('HGETALL', key) : command('GET', key));
        lines.push(`${key} ${type} ${JSON.stringify(value)}`);
      }
      return lines.join('\n');
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    kill,
    async restart() {
      child = await launch(port, options.args ?? []);
    },
    [Symbol.asyncDispose]: kill,
  };
}

async function launch(port: number, args: readonly string[]): Promise<ChildProcess> {
  const fixed = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--loglevel',
    'warning',
  ];
  const child = spawn('redis-server', [...fixed, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  child.once('exit', () => process.off('exit', killAtExit));
  child.stdout.resume();
  await waitUntilAccepting(port, child);
  return child;
}

async function waitUntilAccepting(port: number, child: ChildProcess): Promise<void> {
  const fault = Promise.withResolvers<never>();
  child.once('error', (cause) => fault.reject(new Error('redis-server is needed (Debian: redis-server)', { cause })));
  child.once('exit', (code) => fault.reject(new Error(`redis-server ended with ${String(code)}`)));
  for (let attempt = 1; ; attempt++) {
    const isOpen = await Promise.race([isAccepting(port), fault.promise]);
    if (isOpen) break;
    if (attempt === 1200) throw new Error('redis-server does not take connections');
    await sleep(25);
  }
  // Its end is no fault from here on.
  fault.promise.catch(() => undefined);
}

function isAccepting(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
