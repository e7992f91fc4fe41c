/** The end of the process: every request is finished, or cut where the upstream was cut, and always in time. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { describe, expect, it } from 'vitest';
import { post, callConcurrently } from '../support/calls.ts';
import { startSidecarStack } from '../support/chain.ts';
import { openSocket, readToEnd, sendRaw, waitUntilRefused } from '../support/raw-client.ts';
import { echo, startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';

const UNTHROTTLED = { SIDECAR_RATE: '5000', SIDECAR_BURST: '500' };

describe('SIGTERM', () => {
  it('finishes 50 requests in flight, after readiness is gone and new connections are refused, and exits with 0', async () => {
    let waiting = 0;
    const { promise: responding, resolve: respond } = Promise.withResolvers<undefined>();
    await using chain = await startSidecarStack({
      name: 'drain',
      env: UNTHROTTLED,
      respond: async (...call) => {
        waiting++;
        await responding;
        await echo(...call);
      },
    });
    const { sidecar } = chain;
    const calls = callConcurrently(50, (index) => post(`${sidecar.proxyUrl}/slow`, { index }));
    await waitUntil(() => waiting === 50, 'all in flight');
    const ended = sidecar.stop('SIGTERM');
    await waitUntil(async () => (await fetch(`${sidecar.adminUrl}/readyz`)).status === 503, 'readiness gone');
    await waitUntilRefused(sidecar.proxyUrl);

    respond(undefined);
    const responses = await calls;
    expect(responses.map(({ status }) => status)).toEqual(Array(50).fill(200));
    expect(responses.map(({ text }) => text)).toEqual(
      Array.from({ length: 50 }, (_, index) => JSON.stringify({ index })),
    );
    expect(new Set(responses.map(({ headers }) => headers.connection))).toEqual(new Set(['close']));
    expect(await ended).toEqual({ code: 0, signal: null });
  });

  it('cuts requests that outlast the drain, and exits with 1', async () => {
    await using chain = await startSidecarStack({
      name: 'drain-cut',
      env: { ...UNTHROTTLED, SIDECAR_DRAIN_MS: '500' },
      respond: () => undefined,
    });
    const calls = callConcurrently(3, () => post(`${chain.sidecar.proxyUrl}/never`, {}).catch(() => undefined));
    await waitUntil(() => chain.upstream.requests.length === 3, 'all in flight');
    const startedAt = performance.now();
    expect(await chain.sidecar.stop('SIGTERM')).toEqual({ code: 1, signal: null });
    // The calls themselves would last a minute, a drain by default 25 s.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    await calls;
  });

  it('exits in time when stdout is not read', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'unread-'));
    const socketPath = join(folder, 'proxy.sock');
    await using cleanup = new AsyncDisposableStack();
    cleanup.defer(() => {
      rmSync(folder, { recursive: true });
    });
    await using tokens = await startTokenServer();
    await using upstream = await startRecordingUpstream();
    const env = {
      ...baseSettings(upstream.url, tokens.url, newCredential()),
      ...UNTHROTTLED,
      SIDECAR_LISTEN: `unix:${socketPath}`,
      SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
    };
    await using sidecar = spawnSidecar({ name: 'unread', env, stdout: 'unread' });
    const client = new Agent({ connect: { socketPath }, connections: 16 });
    cleanup.defer(() => client.destroy());
    await waitUntil(() => responses(client), 'the sidecar listens');
    // Far more lines than the pipe and its buffers hold.
    for (let round = 0; round < 40; round++) await callConcurrently(100, () => responses(client));
    const startedAt = performance.now();
    expect(await sidecar.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    // Half a second for the log. An exit that waits for the reader never comes.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });
});

describe('kill -9 of the upstream in the middle of a body', () => {
  it.each([
    ['chunked', ''],
    ['with a Content-Length', "response.setHeader('content-length', '1000000');"],
  ])('%s: the client sees a cut, not a clean end', async (framing, setFraming) => {
    const half = `
      require('node:http').createServer((request, response) => {
        ${setFraming}
        response.write('x'.repeat(1000));
      }).listen(0, '127.0.0.1', function () { console.log(this.address().port); });
    `;
    const upstream = spawn(process.execPath, ['-e', half], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [port] = (await once(upstream.stdout, 'data')) as [Buffer];
    await using tokens = await startTokenServer();
    const env = baseSettings(`http://127.0.0.1:${port.toString().trim()}`, tokens.url, newCredential());
    await using sidecar = await startSidecar({ name: `upstream-killed-${framing.replaceAll(' ', '-')}`, env });
    await waitUntilReady(sidecar);

    const socket = await openSocket(sidecar.proxyUrl);
    const reading = readToEnd(socket);
    let received = '';
    socket.on('data', (bytes: Buffer) => (received += bytes.toString()));
    socket.write(`GET /half HTTP/1.1\r\nHost: ${new URL(sidecar.proxyUrl).host}\r\n\r\n`);
    await waitUntil(() => received.includes('x'.repeat(1000)), 'the first half');
    const gone = once(upstream, 'exit');
    upstream.kill('SIGKILL');
    const response = await reading;
    expect(response.status).toBe(200);
    expect(response.body.toString()).toContain('x'.repeat(1000));
    expect(response.body.length).toBeLessThan(1100);
    expect(response.body.toString()).not.toMatch(/0\r\n\r\n$/);

    // The sidecar itself goes on. Of a process that is being killed the port may outlive the connections for a moment.
    await gone;
    const host = new URL(sidecar.proxyUrl).host;
    const next = await sendRaw(
      sidecar.proxyUrl,
      `POST / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    );
    expect(next.status).toBe(502);
    expect(next.headers['proxy-status']).toContain('error=connection_refused');
  });
});

async function responses(client: Agent): Promise<boolean> {
  try {
    const response = await request('http://localhost/logged', { dispatcher: client });
    await response.body.dump();
    return response.statusCode === 200;
  } catch {
    // Not listening yet.
    return false;
  }
}
