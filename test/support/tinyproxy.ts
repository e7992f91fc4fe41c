/** A real forward proxy: tinyproxy, in the foreground from a temporary folder, on loopback only. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './loopback.ts';
import { openSocket } from './raw-client.ts';

export interface TinyproxyOptions {
  /** Without one everybody may use it. */
  readonly user?: { readonly name: string; readonly password: string };
}

export interface Tinyproxy extends AsyncDisposable {
  readonly host: string;
  /** Destinations of the tunnels that were asked for, host and port, in order. */
  readonly tunnels: () => readonly string[];
}

export async function startTinyproxy({ user }: TinyproxyOptions = {}): Promise<Tinyproxy> {
  const folder = mkdtempSync(join(tmpdir(), 'tinyproxy-'));
  const log = join(folder, 'log');
  const port = await freePort();
  const settings = [
    `Port ${String(port)}`,
    'Listen 127.0.0.1',
    'Timeout 600',
    `LogFile "${log}"`,
    'LogLevel Connect',
    ...(user === undefined ? [] : [`BasicAuth ${user.name} ${user.password}`]),
  ];
  writeFileSync(join(folder, 'conf'), `${settings.join('\n')}\n`);
  const child = spawn('tinyproxy', ['-d', '-c', join(folder, 'conf')], { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.once('error', () => resolve());
  });
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const host = `127.0.0.1:${String(port)}`;
  try {
    await waitUntilAccepting(`http://${host}`);
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error('tinyproxy did not start; is it installed?', { cause: error });
  }
  return {
    host,
    tunnels: () =>
      [...readFileSync(log, 'utf8').matchAll(/Request \(file descriptor \d+\): CONNECT (\S+) /g)].map(
        ([, to = '']) => to,
      ),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
      process.off('exit', killAtExit);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function waitUntilAccepting(url: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      (await openSocket(url)).destroy();
      return;
    } catch (error) {
      if (attempt === 600) throw error;
      await sleep(50);
    }
  }
}
