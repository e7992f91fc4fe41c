/** Every fault of the sidecar's own as it looks on the wire (RFC 9457, RFC 9209). */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LOCAL_REPLY_CODES, SidecarError } from '../../src/platform/errors.ts';
import { buildLocalReply, sendLocalReply, sendRawLocalReply } from '../../src/listener/local-reply.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { ManualClock } from '../support/manual-clock.ts';

const FACTS = { requestId: 'an-id', isOutcomeUnknown: false, mask: (text: string) => text };

const STATUS: Record<string, readonly [status: number, proxyStatus: string]> = {
  HOST_NOT_ALLOWED: [403, 'http_request_denied'],
  ORIGIN_NOT_ALLOWED: [403, 'http_request_denied'],
  REQUEST_NOT_ALLOWED: [403, 'http_request_denied'],
  UPGRADE_NOT_ALLOWED: [403, 'http_request_denied'],
  BAD_REQUEST: [400, 'http_request_denied'],
  METHOD_NOT_ALLOWED: [405, 'http_request_denied'],
  HEADERS_TOO_LARGE: [431, 'http_request_denied'],
  REQUEST_TIMEOUT: [408, 'http_request_error'],
  QUEUE_FULL: [503, 'connection_limit_reached'],
  QUEUE_TIMEOUT: [503, 'connection_limit_reached'],
  QUOTA_EXHAUSTED: [503, 'connection_limit_reached'],
  DRAINING: [503, 'destination_unavailable'],
  TOKEN_REJECTED: [502, 'destination_unavailable'],
  TOKEN_UNAVAILABLE: [503, 'destination_unavailable'],
  UNKNOWN_CALLS_NOT_RECORDED: [503, 'proxy_internal_error'],
  UPSTREAM_UNREACHABLE: [502, 'destination_unavailable'],
  UPSTREAM_RESET: [502, 'connection_terminated'],
  UPSTREAM_PROTOCOL_ERROR: [502, 'http_protocol_error'],
  UPSTREAM_TIMEOUT: [504, 'http_response_timeout'],
};

function fieldsOf(error: SidecarError): Record<string, string> {
  const { headers } = buildLocalReply(error, FACTS);
  return Object.fromEntries(headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? '']] : [])));
}

describe.each(LOCAL_REPLY_CODES)('%s', (code) => {
  it('has its status, problem document and header fields', () => {
    const error = new SidecarError(code, 'grüße: "what" was wrong', { cause: new Error('an inner secret') });
    const { status, body } = buildLocalReply(error, FACTS);
    const fields = fieldsOf(error);
    const [expectedStatus, proxyStatus] = STATUS[code] ?? [];
    expect(status).toBe(expectedStatus);
    expect(JSON.parse(body)).toEqual({
      type: `urn:bearer-sidecar:${code.toLowerCase().replaceAll('_', '-')}`,
      title: expect.stringMatching(/^[A-Z][A-Za-z ]+P?$/) as string,
      status,
      detail: 'grüße: "what" was wrong',
      code,
      requestId: 'an-id',
    });
    expect(fields).toEqual({
      'Content-Type': 'application/problem+json',
      'Content-Length': String(Buffer.byteLength(body)),
      'Cache-Control': 'no-store',
      'Proxy-Status': `bearer-sidecar; error=${String(proxyStatus)}`,
      'X-Request-Id': 'an-id',
      // A disk that is full says nothing of when it is not.
      ...(status === 503 && code !== 'UNKNOWN_CALLS_NOT_RECORDED' ? { 'Retry-After': '1' } : {}),
      // RFC 9110 §15.5.6
      ...(status === 405 ? { Allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' } : {}),
    });
    expect(body).not.toContain('secret');
  });
});

it('Retry-After is whole seconds, rounded up, at least 1, and only with 503', () => {
  const after = (retryAfterMs: number): string | undefined =>
    fieldsOf(new SidecarError('QUEUE_FULL', 'full', { retryAfterMs }))['Retry-After'];
  expect([0, 1, 1000, 1001, 59_500, Infinity, NaN].map(after)).toEqual(['1', '1', '1', '2', '60', '1', '1']);
  const timedOut = new SidecarError('UPSTREAM_TIMEOUT', 'late', { retryAfterMs: 5000 });
  expect(fieldsOf(timedOut)).not.toHaveProperty('Retry-After');
});

it('a more specific Proxy-Status replaces the default', () => {
  const error = new SidecarError('UPSTREAM_UNREACHABLE', 'no name', { proxyStatus: 'dns_error' });
  expect(fieldsOf(error)['Proxy-Status']).toBe('bearer-sidecar; error=dns_error');
});

describe('a reply to a client that is still sending', () => {
  const fault = new SidecarError('BAD_REQUEST', 'no');

  /** A client that sends half a body, reads the response, and never closes. */
  async function callAnd(reply: (request: IncomingMessage, response: ServerResponse) => void): Promise<Socket> {
    const server = createServer(reply);
    const { port } = new URL(await listenOnLoopback(server));
    const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
    onTestFinished(async () => {
      socket.destroy();
      await closeServer(server);
    });
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf');
    await once(socket, 'data');
    return socket;
  }

  it('closes the connection one second later by the injected clock', async () => {
    const clock = new ManualClock();
    let seen: ServerResponse | undefined;
    await callAnd((request, response) => {
      seen = response;
      sendLocalReply(request, response, fault, FACTS, { clock });
    });
    await clock.advance(999);
    expect(seen?.writableEnded).toBe(false);
    await clock.advance(1);
    expect([seen?.writableEnded, clock.pendingTimers]).toEqual([true, 0]);
  });

  it('reads a body that was not being read, and closes with its end', async () => {
    const clock = new ManualClock();
    let ended: Promise<unknown> | undefined;
    const socket = await callAnd((request, response) => {
      request.on('data', () => undefined).pause();
      ended = once(response, 'finish');
      sendLocalReply(request, response, fault, FACTS, { clock });
    });
    socket.write('x'.repeat(96));
    await ended;
    expect(clock.pendingTimers).toBe(0);
  });

  it('closes a bare connection one second later', async () => {
    const clock = new ManualClock();
    let seen: Socket | undefined;
    await callAnd((request) => {
      seen = request.socket;
      sendRawLocalReply(seen, fault, FACTS, clock);
    });
    await clock.advance(999);
    expect(seen?.destroyed).toBe(false);
    await clock.advance(1);
    expect([seen?.destroyed, clock.pendingTimers]).toEqual([true, 0]);
  });
});
