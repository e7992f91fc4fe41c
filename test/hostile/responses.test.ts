/**
 * Responses as bytes: valid and invalid ones of an upstream, and what the client then reads. A second call must
 * get its own response: bytes left over from the first would be taken for it (RFC 9112 §11.1, response splitting).
 */
import { describe, expect, it } from 'vitest';
import { startInProcess, until } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';
import { HEAD, HOST, SMUGGLED } from './corpus/case.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const SECOND = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond';
const POISON = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison';

/** The first call gets these bytes, every later one SECOND. */
async function startResponding(bytes: string) {
  const upstream = await startRawUpstream((socket, _, head) => {
    socket.write(head.includes(' /first ') ? bytes : SECOND, 'latin1');
  });
  return startInProcess({ apiUrl: upstream.url, env: { SIDECAR_RETRY_ATTEMPTS: '1' } });
}

function request(method: string, path: string): string {
  return `${method} ${path} HTTP/1.1\r\n${HEAD}\r\n`;
}

/** As received, without the fields that the sidecar's own connection needs. */
async function readBytes(url: string, bytes: string): Promise<string> {
  const response = await sendRaw(url, bytes);
  return response.bytes.toString('latin1').replaceAll(/^(?:Date|Connection): .*\r\n/gm, '');
}

describe('the client reads exactly', () => {
  it.each([
    [
      'a response after 102 and three times 103',
      'GET',
      `HTTP/1.1 102 P\r\n\r\n${'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(3)}${OK}`,
      OK,
    ],
    ['a response after an unexpected 100', 'GET', `HTTP/1.1 100 Continue\r\n\r\n${OK}`, OK],
    ['a response after 199 with a field', 'POST', `HTTP/1.1 199 Odd\r\nX: y\r\n\r\n${OK}`, OK],
    [
      'HEAD with a length',
      'HEAD',
      'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n',
    ],
    ['HEAD with a coding', 'HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', 'HTTP/1.1 200 OK\r\n\r\n'],
    ['HEAD with a body, which it may not have', 'HEAD', OK, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n'],
    [
      'HEAD with a whole response as its body',
      'HEAD',
      `HTTP/1.1 200 OK\r\nContent-Length: ${POISON.length}\r\n\r\n${POISON}`,
      `HTTP/1.1 200 OK\r\nContent-Length: ${POISON.length}\r\n\r\n`,
    ],
    ['204', 'DELETE', 'HTTP/1.1 204 No Content\r\nX: y\r\n\r\n', 'HTTP/1.1 204 No Content\r\nX: y\r\n\r\n'],
    [
      '204 with a length, which it may not have',
      'GET',
      'HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\n',
      'HTTP/1.1 204 No Content\r\n\r\n',
    ],
    [
      '204 with a body, which it may not have',
      'GET',
      `HTTP/1.1 204 No Content\r\nContent-Length: ${POISON.length}\r\n\r\n${POISON}`,
      'HTTP/1.1 204 No Content\r\n\r\n',
    ],
    [
      '304 with the length of what it stands for',
      'GET',
      'HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n',
      'HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n',
    ],
    [
      '304 with a body, which it may not have',
      'GET',
      `HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n${POISON}`,
      'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n',
    ],
    ['the first of two responses in one packet', 'GET', OK + POISON, OK],
    ['a response with garbage behind it', 'GET', `${OK}\x01\x02nonsense`, OK],
    ['a response with a request behind it', 'GET', OK + SMUGGLED, OK],
    [
      'chunks, with trailers dropped',
      'GET',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2;a=b\r\nok\r\n0\r\nX: y\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    ],
    [
      'connection-specific fields dropped',
      'GET',
      'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nUpgrade: h2c\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 2\r\n\r\nok',
      OK,
    ],
    [
      'a field __proto__',
      'GET',
      'HTTP/1.1 200 OK\r\n__proto__: x\r\nContent-Length: 2\r\n\r\nok',
      'HTTP/1.1 200 OK\r\n__proto__: x\r\nContent-Length: 2\r\n\r\nok',
    ],
    [
      'an unknown status',
      'GET',
      'HTTP/1.1 799 Odd\r\nContent-Length: 2\r\n\r\nok',
      'HTTP/1.1 799 Odd\r\nContent-Length: 2\r\n\r\nok',
    ],
    ['a response of HTTP/1.0', 'GET', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok', OK],
  ])('%s', async (_, method, upstreamBytes, clientBytes) => {
    const { url, eventsOf } = await startResponding(upstreamBytes);
    expect(await readBytes(url, request(method, '/first'))).toBe(clientBytes);
    expect(await readBytes(url, request('GET', '/then'))).toBe(SECOND);
    expect(eventsOf('warning')).toEqual([]);
  });
});

describe('the client gets a reply of the sidecar’s own for', () => {
  it.each([
    ['an unexpected 101', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'],
    [
      'a length and a coding',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    ],
    [
      'two lengths that differ (CVE-2026-1525)',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\nokok',
    ],
    ['the same length twice (CVE-2026-1525)', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok'],
    ['a list of lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok'],
    ['a length that is none', 'HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok'],
    ['a length beyond 64 bits', 'HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nok'],
    ['a NUL in a field', 'HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nok'],
    ['a control character in a field', 'HTTP/1.1 200 OK\r\nX: a\x01b\r\nContent-Length: 2\r\n\r\nok'],
    ['a CR in a field', 'HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok'],
    ['a field name with a blank', 'HTTP/1.1 200 OK\r\nX Y: a\r\nContent-Length: 2\r\n\r\nok'],
    ['a field of 100 kB', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\nContent-Length: 2\r\n\r\nok`],
    ['fields of 100 kB', `HTTP/1.1 200 OK\r\n${'a:b\r\n'.repeat(20_000)}Content-Length: 2\r\n\r\nok`],
    ['a status of 0', 'HTTP/1.1 000 None\r\nContent-Length: 2\r\n\r\nok'],
    ['a status below 100', 'HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\nok'],
    ['a status of four digits', 'HTTP/1.1 2000 High\r\nContent-Length: 2\r\n\r\nok'],
    ['a request', SMUGGLED],
  ])('%s', async (_, upstreamBytes) => {
    const { url, eventsOf } = await startResponding(upstreamBytes);
    const response = await sendRaw(url, request('GET', '/first'));
    expect(response.status).toBe(502);
    // Undici reports a length that contradicts itself and one that is cut short as the same fault.
    expect((JSON.parse(response.body.toString()) as { code: string }).code).toMatch(
      /^UPSTREAM_(?:PROTOCOL_ERROR|RESET)$/,
    );
    expect(await readBytes(url, request('GET', '/then'))).toBe(SECOND);
    expect(eventsOf('warning')).toEqual([]);
  });
});

it('an unsolicited response on an idle connection is discarded', async () => {
  const upstream = await startRawUpstream((socket, _, head) => {
    socket.write(head.includes(' /first ') ? OK : SECOND);
  });
  const { url } = await startInProcess({ apiUrl: upstream.url });
  expect(await readBytes(url, request('GET', '/first'))).toBe(OK);
  const [idle] = upstream.sockets;
  idle?.write(POISON);
  await until(() => idle?.destroyed === true, 'the connection is given up');
  expect(await readBytes(url, request('GET', '/then'))).toBe(SECOND);
});

describe('after a response that closes the connection nothing is processed (RFC 9112 §9.6):', () => {
  it('a request hidden behind the body of one that was refused early', async () => {
    const { url, api, requestRecords } = await startInProcess();
    const socket = await openSocket(url);
    const response = readToEnd(socket);
    socket.write(`POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 4\r\n\r\n`);
    await requestRecords(1);
    socket.write(`body${SMUGGLED}`);
    expect((await response).bytes.toString('latin1').match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 403']);
    await sendRaw(url, request('GET', '/fence'));
    expect(api.requests.map(({ path }) => path)).toEqual(['/fence']);
    expect(await requestRecords(2)).toHaveLength(2);
  });

  it('a request in the same packet as one whose length cannot be trusted', async () => {
    const { url, api, requestRecords } = await startInProcess();
    const refused = `POST / HTTP/1.0\r\n${HOST}Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`;
    const response = await sendRaw(url, refused + SMUGGLED + request('GET', '/more'));
    expect(response.bytes.toString('latin1').match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 400']);
    expect(response.end).toBe('fin');
    await sendRaw(url, request('GET', '/fence'));
    expect(api.requests.map(({ path }) => path)).toEqual(['/fence']);
    expect(await requestRecords(2)).toHaveLength(2);
  });
});

it('after a response that came before the end of the body, the rest of the body is not read as a request', async () => {
  const upstream = await startRawUpstream((socket) => socket.write(OK));
  const { url, requestRecords } = await startInProcess({
    apiUrl: upstream.url,
    env: { SIDECAR_REPLAY_BUFFER_BYTES: '1' },
  });
  const socket = await openSocket(url);
  const response = readToEnd(socket);
  socket.write(`POST / HTTP/1.1\r\n${HOST}Content-Length: ${String(SMUGGLED.length + 4)}\r\n\r\nbody`);
  await requestRecords(1);
  socket.write(SMUGGLED + SMUGGLED);
  const { bytes } = await response;
  expect(bytes.toString('latin1').match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 200']);
  expect(upstream.received.filter((text) => text.startsWith('GET /smuggled'))).toEqual([]);
});
