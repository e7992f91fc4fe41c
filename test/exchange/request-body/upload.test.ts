/** A client's body while it is streamed, and after an early response. */
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { expect, it } from 'vitest';
import { Upload } from '../../../src/exchange/request-body/body-readers.ts';

async function endAnUpload(before: (request: PassThrough) => void): Promise<PassThrough> {
  const request = Object.assign(new PassThrough(), { socket: new Socket() });
  const hooks = { onChunk: () => undefined, startIdleTimer: () => () => undefined };
  const upload = new Upload(request as unknown as IncomingMessage, Buffer.alloc(0), hooks);
  upload.resume();
  before(request);
  upload.destroy();
  await finished(upload).catch(() => undefined);
  return request;
}

it('does not read the rest of the request after it has ended', async () => {
  const request = await endAnUpload(() => undefined);
  expect([request.isPaused(), request.listenerCount('data')]).toEqual([true, 0]);
});

it('ended, it does not stop who reads the rest away', async () => {
  let read = 0;
  const request = await endAnUpload((one) => one.pause().on('data', (chunk: Buffer) => (read += chunk.length)));
  request.write(Buffer.alloc(1000));
  await new Promise(setImmediate);
  expect(read).toBe(1000);
});
