/** A real forward proxy: tinyproxy, in the foreground from a temporary folder, on loopback only. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './loopback.ts';
import { startServerProgram } from './server-program.ts';

export interface TinyproxyOptions {
  /** Default: anyone may use it. */
  readonly user?: { readonly name: string; readonly password: string };
}

export interface Tinyproxy extends AsyncDisposable {
  readonly host: string;
  /** Host and port of each requested tunnel, in order. */
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
  const program = await startServerProgram('tinyproxy', { args: ['-d', '-c', join(folder, 'conf')], port });
  return {
    host: `127.0.0.1:${String(port)}`,
    tunnels: () =>
      [...readFileSync(log, 'utf8').matchAll(/Request \(file descriptor \d+\): CONNECT (\S+) /g)].map(
        ([, to = '']) => to,
      ),
    [Symbol.asyncDispose]: async () => {
      await program.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
