/** A real HAProxy in front of an upstream: it responds with 429 to a client that has sent too many requests lately, or breaks connections. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './loopback.ts';
import { startServerProgram } from './server-program.ts';

export interface HaproxyLimit {
  /** Requests, the refused ones included ... */
  readonly requests: number;
  /** ... within this time, as its stick table counts them: a sliding time, guessed from two that follow one another. */
  readonly seconds: number;
  /** Each method and path has a count of its own. Default false: each client has one. */
  readonly byOperation?: boolean;
  readonly upstream: string;
}

export interface Haproxy extends AsyncDisposable {
  readonly url: string;
}

export interface HaproxyFaults {
  readonly upstream: string;
  /** Of the requests, 0 to 1: half of them are dropped before the upstream sees them, of the others it drops the response (502). */
  readonly faultShare: number;
  /** How long it waits for a response before its 504, milliseconds. */
  readonly timeoutMs: number;
}

export function startHaproxy(limit: HaproxyLimit): Promise<Haproxy> {
  return start((port) => configuration(limit, port));
}

export function startBreakingHaproxy(faults: HaproxyFaults): Promise<Haproxy> {
  return start((port) => breakingConfiguration(faults, port));
}

async function start(configure: (port: number) => string): Promise<Haproxy> {
  const folder = mkdtempSync(join(tmpdir(), 'haproxy-'));
  const file = join(folder, 'haproxy.cfg');
  const port = await freePort();
  writeFileSync(file, configure(port));
  const program = await startServerProgram('haproxy', { args: ['-f', file, '-db'], port });
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      await program.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function configuration({ requests, seconds, byOperation, upstream }: HaproxyLimit, port: number): string {
  const ofOperation = 'http-request set-var-fmt(txn.operation) "%[method] %[path]"';
  return `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend in
  bind 127.0.0.1:${port}
  stick-table type ${byOperation ? 'string len 64' : 'ip'} size 100 expire ${seconds * 6}s store http_req_rate(${seconds}s)
  ${byOperation ? ofOperation : ''}
  http-request track-sc0 ${byOperation ? 'var(txn.operation)' : 'src'}
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt ${requests} }
  default_backend behind
backend behind
  server behind ${new URL(upstream).host}
`;
}

function breakingConfiguration({ upstream, faultShare, timeoutMs }: HaproxyFaults, port: number): string {
  const each = Math.round(1000 * (faultShare / 2));
  return `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server ${timeoutMs}ms
frontend in
  bind 127.0.0.1:${port}
  http-request reject if { rand(1000) lt ${each} }
  http-response deny deny_status 502 if { rand(1000) lt ${each} }
  default_backend behind
backend behind
  server behind ${new URL(upstream).host}
`;
}
