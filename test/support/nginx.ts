/**
 * A real nginx: in front of an upstream, with a 429 past its `limit_req` rate, or with responses of its own as a witness
 * with a process of its own. It runs in the foreground from a temporary folder, on loopback only.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Certificates } from './certificates.ts';
import { startServerProgram } from './server-program.ts';
import { freePort } from './loopback.ts';

export interface NginxLimit {
  /** `rate=` of limit_req, as nginx writes it: `10r/s`. Without one nothing is limited. */
  readonly rate?: string;
  /** Calls let through beyond the rate at once, without delay. Default: none, which is the strictest there is. */
  readonly burst?: number;
  /** What each count is of, in variables of nginx. Default: the client's address. */
  readonly key?: string;
  /** The response past the rate; `own`: that of an nginx without `limit_req_status`, a bare 503. Default: 429 without Retry-After. */
  readonly refusal?: { readonly status: number; readonly retryAfter: string } | 'own';
  /** Base URL of the server behind it: limit_req does not limit the responses of nginx itself. */
  readonly upstream: string;
}

/** One line of the access log. */
interface NginxRequest {
  readonly status: number;
  /** When the response was sent, epoch milliseconds. */
  readonly at: number;
  readonly path: string;
}

export interface Nginx extends AsyncDisposable {
  readonly url: string;
  /** All requests so far, in order. */
  readonly requests: () => readonly NginxRequest[];
}

/** @param limit without one it responds with 200 itself */
export function startNginx(limit?: NginxLimit): Promise<Nginx> {
  return start('http', () => serverConfiguration(limit));
}

/** Speaks TLS, requires a client certificate of the same authority, and responds with the subject of that certificate. */
export function startVerifyingNginx({ ca, cert, key }: Certificates): Promise<Nginx> {
  return start('https', (folder) => {
    for (const [name, contents] of Object.entries({ ca, cert, key })) writeFileSync(join(folder, name), contents);
    const files = `ssl_certificate ${folder}/cert; ssl_certificate_key ${folder}/key; ssl_client_certificate ${folder}/ca;`;
    return {
      context: '',
      inServer: `${files} ssl_verify_client on; location / { return 200 $ssl_client_s_dn; }`,
      listen: 'ssl',
    };
  });
}

/** The parts of a configuration that differ. */
interface NginxServer {
  readonly context: string;
  readonly inServer: string;
  readonly listen: '' | 'ssl';
}

async function start(scheme: 'http' | 'https', prepare: (folder: string) => NginxServer): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'nginx-'));
  const port = await freePort();
  writeFileSync(join(folder, 'nginx.conf'), configuration(prepare(folder), port, folder));
  const args = ['-p', folder, '-c', 'nginx.conf', '-e', join(folder, 'error.log')];
  const program = await startServerProgram('nginx', { args, port });
  return {
    url: `${scheme}://127.0.0.1:${String(port)}`,
    requests: () => readLog(readFileSync(join(folder, 'access.log'), 'utf8')),
    [Symbol.asyncDispose]: async () => {
      await program.stop('SIGTERM');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function configuration({ context, inServer, listen }: NginxServer, port: number, folder: string): string {
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
      ${context}
      server {
        listen 127.0.0.1:${port} ${listen};
        client_max_body_size 16m;
        ${inServer}
      }
    }
  `;
}

function serverConfiguration(limit: NginxLimit | undefined): NginxServer {
  if (limit === undefined) return { context: '', inServer: 'location / { return 200; }', listen: '' };
  const burst = limit.burst === undefined ? '' : ` burst=${limit.burst} nodelay`;
  const zone = limit.rate === undefined ? '' : `limit_req zone=all${burst};`;
  return {
    context: limiterConfiguration(limit),
    inServer: `location / { ${zone} proxy_pass http://behind; }`,
    listen: '',
  };
}

function limiterConfiguration({ rate, refusal, upstream, key = '$binary_remote_addr' }: NginxLimit): string {
  const zone = `limit_req_zone ${key} zone=all:1m rate=${rate ?? ''};`;
  return `
    ${rate === undefined ? '' : `${zone} ${refusal === 'own' ? '' : refusalConfiguration(refusal)}`}
    upstream behind { server ${new URL(upstream).host}; keepalive 16; }
    proxy_http_version 1.1;
    proxy_set_header Connection "";
  `;
}

function refusalConfiguration({ status, retryAfter } = { status: 429, retryAfter: '""' }): string {
  // An empty value is a field that is not sent.
  const field = `map $limit_req_status $wait { REJECTED ${retryAfter}; default ""; } add_header Retry-After $wait always;`;
  return `limit_req_status ${status}; ${field}`;
}

function readLog(text: string): NginxRequest[] {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => {
    const [status, seconds, path = ''] = line.split(' ');
    return { status: Number(status), at: Number(seconds) * 1000, path };
  });
}
