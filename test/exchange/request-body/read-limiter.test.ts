/** A body of very many small chunks takes its turns of the event loop beside everything else. */
import { createServer } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { getReadLimiter } from '../../../src/exchange/request-body/body-readers.ts';
import { startInProcess } from '../../composition/in-process.ts';
import { closeServer, listenOnLoopback } from '../../support/loopback.ts';
import { openSocket, readToEnd } from '../../support/raw-client.ts';

const CHUNKS = 200_000;
/** A buffer of 64 KiB holds 10 923 of them. */
const MOST_IN_A_TURN = 25_000;
const HEAD = 'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';
const bodyOf = (chunks: number): string => `${'1\r\nx\r\n'.repeat(chunks)}0\r\n\r\n`;

/** Reads a body as a server does that counts each chunk with a limiter, or with none. @returns the most chunks in one turn */
async function countPerTurn(isLimited: boolean): Promise<{ received: number; most: number }> {
  let [received, inTurn, most] = [0, 0, 0];
  let isOver = false;
  const server = createServer((request, response) => {
    const limiter = isLimited ? getReadLimiter(request.socket) : undefined;
    request.on('data', (chunk: Buffer) => {
      received += chunk.length;
      inTurn++;
      limiter?.countChunk();
    });
    request.on('end', () => response.end());
  });
  onTestFinished(() => closeServer(server));
  const socket = await openSocket(await listenOnLoopback(server));
  const endTurn = (): void => {
    most = Math.max(most, inTurn);
    inTurn = 0;
    if (!isOver) setImmediate(endTurn);
  };
  setImmediate(endTurn);
  const reading = readToEnd(socket);
  socket.write(HEAD + bodyOf(CHUNKS));
  await reading;
  isOver = true;
  return { received, most };
}

it('one connection brings one buffer in a turn, and no chunk is lost', async () => {
  const { received, most } = await countPerTurn(true);
  expect(received).toBe(CHUNKS);
  expect(most).toBeLessThan(MOST_IN_A_TURN);
});

it('without a limiter it brings many', async () => {
  expect((await countPerTurn(false)).most).toBeGreaterThan(MOST_IN_A_TURN);
});

it('pipelined requests of many small chunks share the limiter of their connection', async () => {
  // The process must not be warned of listeners: startInProcess fails then.
  const { url, requestRecords } = await startInProcess();
  const socket = await openSocket(url);
  const one = `POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${bodyOf(300)}`;
  socket.resume().write(one.repeat(30));
  expect((await requestRecords(30)).map(({ code }) => code)).toEqual(Array.from({ length: 30 }, () => 200));
  socket.destroy();
});

it.each([
  ['buffered', '1000000'],
  ['streamed', '1000'],
])('the upstream receives every byte of such bodies, %s', async (_, replayBufferBytes) => {
  const { url, api } = await startInProcess({ env: { SIDECAR_REPLAY_BUFFER_BYTES: replayBufferBytes } });
  const calls = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const socket = await openSocket(url);
      const response = readToEnd(socket);
      socket.write(HEAD + bodyOf(20_000));
      return response;
    }),
  );
  expect(calls.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(api.requests.map(({ bodyBytes }) => bodyBytes)).toEqual([20_000, 20_000, 20_000]);
  expect(new Set(api.requests.map(({ bodySha256 }) => bodySha256)).size).toBe(1);
});
