/** Bodies far larger than any buffer arrive whole in both directions, also when the reader is slow. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { describe, expect, it } from 'vitest';
import { startSidecarStack } from '../support/chain.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

const MIB = 1024 * 1024;
const SIZE = 64 * MIB;

describe('64 MiB', () => {
  it('up: the upstream receives every byte, and the length that was announced', async () => {
    await using chain = await startSidecarStack({
      name: 'body-up',
      respond: (received, response) => void response.end(received.bodySha256),
    });
    const sent = createHash('sha256');
    for (const block of blocks()) sent.update(block);
    const response = await request(`${chain.sidecar.proxyUrl}/upload`, {
      method: 'PUT',
      headers: { 'content-length': String(SIZE), 'content-type': 'application/octet-stream' },
      body: Readable.from(blocks()),
    });
    expect(response.statusCode).toBe(200);
    expect(await response.body.text()).toBe(sent.digest('hex'));
    expect(chain.upstream.requests[0]).toMatchObject({ bodyBytes: SIZE, headers: { 'content-length': String(SIZE) } });
  });

  it('down, to a reader that pauses: the client receives every byte', async () => {
    const sent = createHash('sha256');
    for (const block of blocks()) sent.update(block);
    const server = createServer((_request, response) => void Readable.from(blocks()).pipe(response));
    await using cleanup = new AsyncDisposableStack();
    const url = await listenOnLoopback(server);
    cleanup.defer(() => closeServer(server));
    await using tokens = await startTokenServer();
    await using sidecar = await startSidecar({
      name: 'body-down',
      env: baseSettings(url, tokens.url, newCredential()),
    });
    await waitUntilReady(sidecar);

    const client = new Agent();
    cleanup.defer(() => client.destroy());
    const response = await request(`${sidecar.proxyUrl}/download`, { dispatcher: client });
    const received = createHash('sha256');
    let bytes = 0;
    let nextPause = MIB;
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      received.update(chunk);
      bytes += chunk.length;
      if (bytes < nextPause) continue;
      nextPause += MIB;
      await sleep(10);
    }
    expect(bytes).toBe(SIZE);
    expect(received.digest('hex')).toBe(sent.digest('hex'));
  });
});

/** 64 blocks of 1 MiB, each different. */
function* blocks(): Generator<Buffer> {
  for (let index = 0; index < SIZE / MIB; index++) yield Buffer.alloc(MIB, `block ${String(index)} `);
}
