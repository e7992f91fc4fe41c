/** What leaves the process by ways that are not the proxy's: signals, reports, debug output, argv, the log. Linux. */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { post } from '../support/calls.ts';
import { startSidecarStack } from '../support/chain.ts';
import type { SidecarStack } from '../support/chain.ts';
import { MAIN } from '../support/main-file.ts';
import { sendRaw } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar, startSidecar } from '../support/sidecar-process.ts';

/** The secret, the token, and the Basic form of the credential, as they were really sent. */
function sentSecrets({ tokens }: SidecarStack): string[] {
  const basic = tokens.requests[0]?.headers.authorization?.replace('Basic ', '') ?? '';
  const [, secret = ''] = /^[^:]*:(.*)$/s.exec(Buffer.from(basic, 'base64').toString()) ?? [];
  return [basic, secret, tokens.issued[0]?.value ?? ''];
}

/** Finds text and its hexadecimal dump, of which the first bytes are enough. */
function expectNoneIn(output: string, secrets: readonly string[]): void {
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(8);
    expect(output.includes(secret)).toBe(false);
    const bytes = Buffer.from(secret).subarray(0, 8).toString('hex');
    expect(output.replaceAll(' ', '').includes(bytes)).toBe(false);
  }
}

describe('Node.js itself', () => {
  it('opens no debugger on SIGUSR1, and goes on', async () => {
    await using chain = await startSidecarStack({ name: 'sigusr1' });
    process.kill(chain.sidecar.pid, 'SIGUSR1');
    expect((await post(`${chain.sidecar.proxyUrl}/quotes`, {})).status).toBe(200);
    expect(await chain.sidecar.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(chain.sidecar.stderr()).toBe('');
  });

  it('puts no secret into a diagnostic report', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'reports-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const env = { NODE_OPTIONS: `--report-on-signal --report-compact --report-directory=${folder}` };
    await using chain = await startSidecarStack({ name: 'diagnostic-report', env });
    process.kill(chain.sidecar.pid, 'SIGUSR2');
    // The report is written when the event loop comes to it, which a SIGTERM sent meanwhile can precede.
    await expect.poll(() => readdirSync(folder)).toHaveLength(1);
    await chain.sidecar.stop('SIGTERM');
    const [file, ...others] = readdirSync(folder);
    expect(others).toEqual([]);
    const report = readFileSync(join(folder, file ?? ''), 'utf8');
    expect(JSON.parse(report)).toMatchObject({ header: { trigger: 'Signal' } });
    expectNoneIn(report, sentSecrets(chain));
    expect(report).not.toContain('SIDECAR_CLIENT_SECRET');
  });
});

describe('what only the start needed', () => {
  it.each([
    [['--expose-gc'], true],
    [[], false],
  ])('is given back once it has started, where Node.js lets programs ask for that: %j', async (flags, isGivenBack) => {
    await using sidecar = await startSidecar({
      name: 'give-start-back',
      program: [process.execPath, '--trace-gc', ...flags, MAIN],
      env: baseSettings('http://127.0.0.1:1', 'http://127.0.0.1:1', newCredential()),
    });
    await sidecar.waitForLine(/"msg":"token request failed/);
    expect(sidecar.stdout().includes('Mark-Compact (reduce)')).toBe(isGivenBack);
  });
});

describe('debug output', () => {
  it.each(['*', 'http,net,tls,undici', 'stream'])(
    'of DEBUG=* and NODE_DEBUG=%s shows no token and no secret',
    async (sections) => {
      const env = { DEBUG: '*', NODE_DEBUG: sections, SIDECAR_WEBSOCKET: 'true', SIDECAR_LOG_LEVEL: 'trace' };
      await using chain = await startSidecarStack({ name: 'debug-output', env });
      new WebSocketServer({ server: chain.upstream.server }).on('connection', (socket) => socket.close());
      expect((await post(`${chain.sidecar.proxyUrl}/quotes`, {})).status).toBe(200);
      await once(new WebSocket(chain.sidecar.proxyUrl.replace('http', 'ws')), 'close');
      const commandLine = readFileSync(`/proc/${chain.sidecar.pid}/cmdline`, 'utf8');
      expect(await chain.sidecar.stop('SIGTERM')).toEqual({ code: 0, signal: null });
      const { stdout, stderr } = chain.sidecar;
      expect(stderr()).toContain('NODE_DEBUG is ignored');
      expectNoneIn(stdout() + stderr() + commandLine, sentSecrets(chain));
    },
  );
});

describe('an argument that is not understood', () => {
  it.each([
    [['--client-secret=hush-hush']],
    [['--client-secret', 'hush-hush']],
    [['-shush-hush']],
    [['--help=hush-hush']],
    [['SIDECAR_CLIENT_SECRET=hush-hush']],
    [['run', 'SIDECAR_CLIENT_SECRET=hush-hush']],
  ])('%j is refused, and its value not repeated', async (args) => {
    await using sidecar = spawnSidecar({ name: 'arguments', args });
    expect(await sidecar.exit).toEqual({ code: 2, signal: null });
    expect(sidecar.stderr()).toMatch(/^bearer-sidecar: .*\n$/);
    expect(sidecar.stdout() + sidecar.stderr()).not.toContain('hush');
  });

  it('cannot write a line of its own or steer a terminal', async () => {
    await using sidecar = spawnSidecar({ name: 'arguments', args: ['\u001b[31mred\r\nbearer-sidecar: fine'] });
    expect(await sidecar.exit).toEqual({ code: 2, signal: null });
    expect(sidecar.stderr()).toMatch(/^bearer-sidecar: [\x20-\x7e…]*\n$/);
  });
});

describe('the log', () => {
  /** Whole lines of JSON, and nothing that a terminal would obey. */
  const expectPlainLines = (output: string): void => {
    expect(output).not.toMatch(/[\0-\t\v-\x1f\x7f-\x9f\u2028\u2029]/);
    for (const line of output.trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('msg');
  };

  it('takes no line and no colour from the input of a client', async () => {
    await using chain = await startSidecarStack({ name: 'log-injection-client' });
    const send = (head: string) => sendRaw(chain.sidecar.proxyUrl, Buffer.from(`${head}\r\n\r\n`, 'latin1'));
    const end = 'Host: 127.0.0.1\r\nConnection: close';
    for (const head of [
      `GET /\x9b31m\x85path HTTP/1.1\r\n${end}`,
      `GET /%0d%0a%1b[31m HTTP/1.1\r\n${end}`,
      `GET http://127.0.0.1/\x9b31m HTTP/1.1\r\n${end}`,
      `GET /\x1b[31m HTTP/1.1\r\n${end}`,
      `G\x1b[31mT / HTTP/1.1\r\n${end}`,
      'GET / HTTP/1.1\r\nHost: \x9b31mhost\r\nConnection: close',
      'GET / HTTP/1.1\r\nHost: \x1b[31mhost\r\nConnection: close',
      `GET / HTTP/1.1\r\n${end}\r\nOrigin: http://\x9b31m\x85origin`,
      `GET / HTTP/1.1\r\n${end}\r\nSec-Fetch-Site: \x1b[31m\x85site`,
      `GET / HTTP/1.1\r\n${end}\r\nX-Sidecar-Timeout-Ms: \x9b31m`,
    ])
      expect((await send(head)).status).toBeGreaterThan(0);
    await chain.sidecar.stop('SIGTERM');
    expectPlainLines(chain.sidecar.stdout());
    expect(chain.sidecar.stdout().match(/"msg":"request"/g)).toHaveLength(10);
    expect(chain.sidecar.stderr()).toBe('');
  });

  it('takes none from the responses of the two servers', async () => {
    const hostile = '\u001b[31m\r\n{"level":"info","msg":"forged"}\u009b\u2028';
    await using tokens = await startRecordingUpstream((_request, response) => {
      const body = JSON.stringify({ error: hostile, error_description: hostile });
      response.writeHead(400, { 'content-type': 'application/json' }).end(body);
    });
    await using sidecar = await startSidecar({
      name: 'log-injection-token-endpoint',
      env: baseSettings('http://127.0.0.1:1', tokens.url, newCredential()),
    });
    await sidecar.waitForLine(/"outcome":"rejected"/);

    await using chain = await startSidecarStack({
      name: 'log-injection-upstream',
      respond: (_request, response) => {
        response.setHeader('RateLimit', 'limit=\x9b31m, \x85remaining=0');
        response.setHeader('X-RateLimit-Limit', '\x9b31m');
        response.writeHead(429, { 'retry-after': '3600' }).end();
      },
    });
    expect((await post(`${chain.sidecar.proxyUrl}/quotes`, {})).status).toBe(429);
    await sleep(20);
    for (const process of [sidecar, chain.sidecar]) {
      await process.stop('SIGTERM');
      expectPlainLines(process.stdout());
      expect(process.stdout()).not.toContain('"msg":"forged"');
    }
  });
});
