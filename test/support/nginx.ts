/**
 * A real nginx: in front of an upstream, answering 429 past its `limit_req` rate, or answering for itself as a witness
 * with a process of its own. It runs in the foreground from a temporary folder, on loopback only.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSocket } from './raw-client.ts';
import { freePort } from './loopback.ts';

export interface NginxLimit {
  /** `rate=` of limit_req, as nginx writes it: `10r/s`. Without one nothing is limited. */
  readonly rate?: string;
  /** Base URL of the server behind it: limit_req limits nothing that nginx answers by itself. */
  readonly upstream: string;
}

/** One line of the access log. */
interface NginxRequest {
  readonly status: number;
  /** When it was answered, epoch milliseconds. */
  readonly at: number;
  readonly path: string;
}

export interface Nginx extends AsyncDisposable {
  readonly url: string;
  /** Everything answered so far, in order. */
  readonly requests: () => readonly NginxRequest[];
}

/** @param limit without one it answers everything itself, 200 */
export async function startNginx(limit?: NginxLimit): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'nginx-'));
  const port = await freePort();
  writeFileSync(join(folder, 'nginx.conf'), configuration(limit, port, folder));
  const child = spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', join(folder, 'error.log')], {
    env: { PATH: `${process.env.PATH ?? ''}:/usr/sbin` },
    stdio: 'ignore',
  });
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.once('error', () => resolve());
  });
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);

  const url = `http://127.0.0.1:${String(port)}`;
  try {
    await untilItAccepts(url);
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error('nginx did not start; is it installed?', { cause: error });
  }
  return {
    url,
    requests: () => readLog(readFileSync(join(folder, 'access.log'), 'utf8')),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM');
      await ended;
      process.off('exit', killAtExit);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function configuration(limit: NginxLimit | undefined, port: number, folder: string): string {
  // Root's nginx would give its temporary folders to another user and then be unable to reach them.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  return `
    ${user}
    daemon off;
    worker_processes 1;
    pid ${folder}/nginx.pid;
    events { worker_connections 1024; }
    http {
      ${temporary.join(' ')}
      log_format line '$status $msec $request_uri';
      access_log ${folder}/access.log line;
      ${limit === undefined ? '' : limiter(limit)}
      server {
        listen 127.0.0.1:${port};
        client_max_body_size 16m;
        location / { ${limit === undefined ? 'return 200;' : `${limit.rate === undefined ? '' : 'limit_req zone=all;'} proxy_pass http://behind;`} }
      }
    }
  `;
}

function limiter({ rate, upstream }: NginxLimit): string {
  return `
    ${rate === undefined ? '' : `limit_req_zone $binary_remote_addr zone=all:1m rate=${rate}; limit_req_status 429;`}
    upstream behind { server ${new URL(upstream).host}; keepalive 16; }
    proxy_http_version 1.1;
    proxy_set_header Connection "";
  `;
}

async function untilItAccepts(url: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      (await openSocket(url)).destroy();
      return;
    } catch (error) {
      if (attempt === 100) throw error;
      await sleep(50);
    }
  }
}

function readLog(text: string): NginxRequest[] {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => {
    const [status, seconds, path = ''] = line.split(' ');
    return { status: Number(status), at: Number(seconds) * 1000, path };
  });
}
