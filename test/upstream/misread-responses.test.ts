/** Responses that some clients read and the sidecar refuses: each fault is named by its own cause. */
import { describe, expect, it } from 'vitest';
import { toSidecarError } from '../../src/exchange/attempt-outcome.ts';
import { afterHead, openUpstream, send, startWireServer } from './wire.ts';

const LENGTH = 'Content-Length: 2\r\n';

describe('a response head', () => {
  it.each([
    [
      'a folded field after the length',
      `HTTP/1.1 200 OK\r\n${LENGTH}X-A: b\r\n c\r\n\r\nok`,
      'is folded over two lines',
    ],
    ['a folded field', `HTTP/1.1 200 OK\r\nX-A: b\r\n\tc\r\n${LENGTH}\r\nok`, 'is folded over two lines'],
    ['a blank before a colon', `HTTP/1.1 200 OK\r\n${LENGTH}X-A : b\r\n\r\nok`, 'has a blank before its colon'],
    [
      'a blank before that of the length',
      'HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok',
      'has a blank before its colon',
    ],
    ['lines that end with LF', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok', 'ends with LF alone'],
    ['a field that ends with LF', `HTTP/1.1 200 OK\r\n${LENGTH}X-A: b\nX-C: d\r\n\r\nok`, 'ends with LF alone'],
    ['two lengths', `HTTP/1.1 200 OK\r\n${LENGTH}Content-Length: 3\r\n\r\nok`, 'contradictory lengths'],
    ['a length and chunks', `HTTP/1.1 200 OK\r\n${LENGTH}Transfer-Encoding: chunked\r\n\r\n`, 'contradictory lengths'],
    ['a TLS alert', '\x15\x03\x03\0\x02\x02\x46', 'speaks TLS on this port'],
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n', 'does not speak HTTP'],
  ])('with %s is refused, and the fault named', async (_, bytes, words) => {
    await using server = await startWireServer(afterHead(bytes, (socket) => socket.end()));
    await using upstream = openUpstream(server.url);
    const end = await send(upstream).end;
    expect(end).toMatchObject({ kind: 'failed', failure: { kind: 'protocol', cause: 'protocol', permanent: true } });
    expect(end.kind === 'failed' ? toSidecarError(end.failure).message : '').toContain(words);
    expect(server.sockets).toHaveLength(1);
  });
});

it('that is not valid in another way is shown with the words of the parser', async () => {
  const bytes = `HTTP/1.1 200 OK\r\n${LENGTH}X-A: b\0c\r\n\r\nok`;
  await using server = await startWireServer(afterHead(bytes, (socket) => socket.end()));
  await using upstream = openUpstream(server.url);
  const end = await send(upstream).end;
  const detail = 'the upstream sent a response that is not valid HTTP: Invalid header value char (HTTPParserError)';
  expect(end).toMatchObject({ failure: { kind: 'protocol', detail } });
});
