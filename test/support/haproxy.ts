/** A real HAProxy in front of an upstream: it responds with 429 to a client that has sent too many requests lately. */
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
  const program = await startServerProgram('haproxy', { args: ['-f', file, '-db'], port });
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      await program.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
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
