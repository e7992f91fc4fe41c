/**
 * A real Redis on a free port of 127.0.0.1 for one test. The test can suspend it (SIGSTOP), kill it, restart it on the same port, and
 * send commands on a connection of its own.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@redis/client';
import { onTestFinished } from 'vitest';
import { freePort } from './loopback.ts';
import { startRedisServer } from './redis-server.ts';

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
  /** Blocks this process until Redis has responded to a PING of another process. */
  waitForPingOfOtherProcess(): void;
  /** Every key with its content, as text. */
  dump(): Promise<string>;
  /** SIGSTOP: the kernel accepts connections, and there is no response. */
  pause(): void;
  resume(): void;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** After `kill`: starts an empty one on the same port. */
  restart(): Promise<void>;
}

export async function startRedis(options: RedisOptions = {}): Promise<Redis> {
  const port = await freePort();
  const url = options.url?.(port) ?? `redis://127.0.0.1:${port}`;
  let server = await startRedisServer(port, options.args);
  const kill = (): Promise<void> => server.stop();
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
    pause: () => void server.child.kill('SIGSTOP'),
    resume: () => void server.child.kill('SIGCONT'),
    kill,
    async restart() {
      server = await startRedisServer(port, options.args);
    },
    [Symbol.asyncDispose]: kill,
  };
}

/** A Redis in cluster mode, of one node. */
export async function startClusterRedis({ args = [], url }: RedisOptions = {}): Promise<Redis> {
  const folder = mkdtempSync(join(tmpdir(), 'redis-cluster-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const nodes = join(folder, 'nodes.conf');
  // The default, 10 000 above the port, can be a port of a client, and Redis ends where it is taken.
  const cluster = ['--cluster-enabled', 'yes', '--cluster-config-file', nodes, '--cluster-port', `${await freePort()}`];
  return startRedis({ args: [...cluster, ...args], ...(url && { url }) });
}

/** The rights that docs/fleet.md lists, one word each. */
export const DOCUMENTED_RIGHTS =
  /ACL SETUSER sidecar on >PASSWORD (.*)/.exec(readFileSync('docs/fleet.md', 'utf8'))?.[1]?.split(' ') ?? [];

/** A Redis with a user who has these rights, on a database that has to be selected. */
export async function startRedisWithRights(rights: readonly string[]): Promise<Redis> {
  const user = ['--user', 'sidecar', 'on', '>sesame', 'resetchannels', ...rights];
  return startRedis({ args: user, url: (port) => `redis://sidecar:sesame@127.0.0.1:${port}/2` });
}
