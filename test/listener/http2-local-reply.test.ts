/** What a client of HTTP/2 with prior knowledge is shown: node:http2, curl, and the frames as bytes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { createConnection } from 'node:net';
import { expect, it } from 'vitest';
import { sendRaw } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { startProxy } from './proxy.ts';

const WORDS = 'this port HTTP/1.1 only: set the client to HTTP/1.1';

it('a client gets the reason with GOAWAY, and is recorded once', async () => {
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url);
  const session = connect(proxy.url);
  session.on('error', () => session.destroy());
  const [code, , reason] = (await once(session, 'goaway')) as [number, number, Buffer];
  expect(code).toBe(13);
  expect(reason.toString()).toContain(WORDS);
  session.destroy();
  expect(await proxy.requestRecords(1)).toMatchObject([{ code: 400, localReply: 'BAD_REQUEST' }]);
  expect(upstream.requests).toEqual([]);
});

it('a request in the first packet gets the problem document; without it there is the reason alone', async () => {
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url);
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
  const headers = Buffer.from([0, 0, 1, 1, 5, 0, 0, 0, 1, 0x82]);
  const whole = (await sendRaw(proxy.url, Buffer.concat([preface, settings, headers]))).bytes;
  expect(whole.subarray(0, 9)).toEqual(settings);
  expect(whole.toString('latin1')).toContain('"code":"BAD_REQUEST"');
  for (const rest of [Buffer.alloc(0), settings, headers.subarray(0, 5)]) {
    const text = (await sendRaw(proxy.url, Buffer.concat([preface, rest]))).bytes.toString('latin1');
    expect(text).toContain(WORDS);
    expect(text).not.toContain('"code"');
  }
});

it('a client that resets the connection before its first request disturbs no other', async () => {
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url);
  for (let n = 0; n < 5; n++) {
    const socket = createConnection(Number(new URL(proxy.url).port), '127.0.0.1');
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    // By its response the listener has read the preface, too.
    await (await fetch(proxy.url)).arrayBuffer();
    socket.resetAndDestroy();
  }
  const { bytes } = await sendRaw(proxy.url, Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'));
  expect(bytes.toString('latin1')).toContain(WORDS);
});

it('curl shows the problem document', async () => {
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url);
  const child = spawn('curl', ['-s', '-w', '%{http_code}', '--http2-prior-knowledge', `${proxy.url}/x`]);
  let shown = '';
  child.stdout.on('data', (bytes: Buffer) => (shown += bytes.toString()));
  await once(child, 'close');
  expect(shown).toContain(WORDS);
  expect(shown).toMatch(/400$/);
});

it('a ClientHello gets the reason in HTTP/1.1', async () => {
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url);
  const reply = await sendRaw(proxy.url, Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]));
  expect(reply.status).toBe(400);
  expect(reply.body.toString()).toContain('the client speaks TLS, and this port does not: use an http: URL');
});
