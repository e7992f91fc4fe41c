/** A real HAProxy in front of an upstream: it answers 429 to whoever has made too many requests lately. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './loopback.ts';
import { openSocket } from './raw-client.ts';

export interface HaproxyLimit {
  /** Requests, the refused ones included ... */
  readonly requests: number;
  /** ... within this time, as its stick table counts them: a sliding time, guessed from two that follow one another. */
  readonly seconds: number;
  readonly upstream: string;
}

export interface Haproxy extends AsyncDisposable {
  readonly url: string;
}

export async function startHaproxy(limit: HaproxyLimit): Promise<Haproxy> {
  const folder = mkdtempSync(join(tmpdir(), 'haproxy-'));
  const file = join(folder, 'haproxy.cfg');
  const port = await freePort();
  writeFileSync(file, configuration(limit, port));
  const path = `${process.env.PATH ?? ''}:/usr/sbin`;
  const child = spawn('haproxy', ['-f', file, '-db'], { env: { PATH: path }, stdio: 'ignore' });
  const ended = once(child, 'close').catch((error: unknown) => error);
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const url = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
    process.off('exit', killAtExit);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await waitUntilAccepting(url);
  } catch (error) {
    await stop();
    throw new Error('haproxy did not start; is it installed?', { cause: error });
  }
  return { url, [Symbol.asyncDispose]: stop };
}

function configuration({ requests, seconds, upstream }: HaproxyLimit, port: number): string {
  return `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend in
  bind 127.0.0.1:${port}
  stick-table type ip size 100 expire ${seconds * 6}s store http_req_rate(${seconds}s)
  http-request track-sc0 src
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt ${requests} }
  default_backend behind
backend behind
  server behind ${new URL(upstream).host}
`;
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
