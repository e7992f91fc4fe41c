/** Responses that come before their requests have been sent to the end, and what follows on their connections. */
import { expect, it } from 'vitest';
import { startInProcess, until } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';

const STREAMED = { SIDECAR_REPLAY_BUFFER_BYTES: '1024' };
const HEAD = 'POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n';

it('a request pipelined after a response that closes the connection does not reach the upstream', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  });
  const chain = await startInProcess({ apiUrl: upstream.url, env: STREAMED });
  const socket = await openSocket(chain.url);
  const reading = readToEnd(socket);
  socket.write(HEAD + 'x'.repeat(2000));
  const head = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
  expect(head.toString().toLowerCase()).toContain('connection: close');
  socket.write(`${'x'.repeat(3000)}POST /b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nxyz`);
  expect((await reading).bytes.toString().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
  await chain.requestRecords(1);
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  expect(upstream.received.join('')).not.toContain('/b');
  expect((await chain.requestRecords(1)).map(({ path, code, source }) => [path, code, source])).toEqual([
    ['/a', 200, 'upstream'],
  ]);
});

it('a client that closes after the whole response is not recorded as having left', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno');
  });
  const chain = await startInProcess({ apiUrl: upstream.url, env: STREAMED });
  const socket = await openSocket(chain.url);
  let received = '';
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    if (received.endsWith('no')) socket.end();
  });
  socket.write(HEAD + 'x'.repeat(2000));
  await until(() => chain.eventsOf('request-ended').length === 1, 'its end');
  expect(chain.eventsOf('request-ended')).toMatchObject([
    { path: '/a', code: 413, source: 'upstream', responseBytes: 2 },
  ]);
});
