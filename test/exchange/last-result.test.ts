/**
 * What the client gets when no further attempt is made: the result of the last attempt that was sent, however the request ends. A call
 * that may have been carried out is never reported as one that was not.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startInProcess, until } from '../composition/in-process.ts';
import { send } from '../composition/send.ts';
import { makeCertificates } from '../support/certificates.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';
import { countEvents, plans, play, predict, type Plan } from './played-plan.ts';

/** Each of them was reported as not carried out before, although it may have been. */
const EXAMPLES: readonly Plan[] = [
  { method: 'POST', steps: ['429'], end: 'time-out', isTokenReplaced: true, isTrusted: false },
  { method: 'POST', steps: ['429', 'reset'], end: 'success', isTokenReplaced: true, isTrusted: false },
  { method: 'POST', steps: ['401', 'reset'], end: 'success', isTokenReplaced: true, isTrusted: false },
  { method: 'POST', steps: ['401', 'cut 429'], end: 'deadline', isTokenReplaced: true, isTrusted: false },
  { method: 'POST', steps: [], end: 'drain', isTokenReplaced: true, isTrusted: false },
  { method: 'PUT', steps: ['503', 'reset'], end: 'drain in a wait', isTokenReplaced: true, isTrusted: false },
];

describe('the result of the last attempt that was sent', () => {
  it('is what the client gets, after any earlier result and however the request ends', async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        const { reply, proxy } = await play(plan);
        expect(reply).toBe(predict(plan));
        expect(proxy.ended()).toMatchObject([{ localReply: typeof reply === 'string' ? reply : undefined }]);
        expect(countEvents(proxy, 'local-reply')).toBe(typeof reply === 'string' ? 1 : 0);
        expect(countEvents(proxy, 'attempt-ended')).toBe(countEvents(proxy, 'permit-granted'));
      }),
      { numRuns: 150, examples: EXAMPLES.map((plan): [Plan] => [plan]) },
    );
  });
});

/** An https: upstream that refuses the first calls with 429, each on a connection of its own, and then lets handshakes hang. */
async function startHangingUpstream(refusals: number) {
  const certificates = makeCertificates();
  const { key, cert, caFile } = certificates;
  const tls = createTlsServer({ key, cert }, (socket) => {
    const refusal = 'HTTP/1.1 429 X\r\nRetry-After: 0\r\nContent-Length: 7\r\nConnection: close\r\n\r\nrefused';
    socket.once('data', () => socket.end(refusal));
  });
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    if (sockets.push(socket) <= refusals) tls.emit('connection', socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
    certificates[Symbol.dispose]();
  });
  return { url: `https://127.0.0.1:${String((server.address() as AddressInfo).port)}`, caFile, sockets };
}

const DRAIN = { SIDECAR_DRAIN_MS: '1000' };
const POST = { method: 'POST', body: 'x' };

describe('an attempt whose connection is not open yet was not sent', () => {
  it.each([
    [0, 'drain', 503, 'DRAINING'],
    [1, 'drain', 429, undefined],
    [1, 'deadline', 429, undefined],
  ] as const)('after %i refusals, ended by the %s: the client gets %i %s', async (refusals, end, status, code) => {
    const clock = new ManualClock();
    const upstream = await startHangingUpstream(refusals);
    const { url, sidecar, eventsOf, requestRecords } = await startInProcess({
      clock,
      apiUrl: upstream.url,
      env: { ...DRAIN, SIDECAR_CA_FILE: upstream.caFile, SIDECAR_DEADLINE_MS: '1000' },
    });
    const call = send(url, POST);
    await until(async () => {
      await clock.advance(1);
      return upstream.sockets.length > refusals;
    }, 'a handshake that hangs');
    // A permit is spent when its attempt is sent.
    expect(eventsOf('permit-granted')).toHaveLength(refusals);
    if (end === 'drain') await Promise.all([sidecar.drain(), clock.advance(2000)]);
    else await clock.advance(1000);
    expect(await call).toMatchObject({ status, code });
    expect(await requestRecords(1)).toMatchObject([{ code: status, attempts: refusals + 1 }]);
  });
});

describe('a call that was sent and is cut by the drain gets UPSTREAM_TIMEOUT', () => {
  it.each([
    ['that is still being uploaded', 'HTTP/1.1 100 Continue\r\n\r\n', { SIDECAR_REPLAY_BUFFER_BYTES: '1' }, 1],
    ['whose refusal has come in part', 'HTTP/1.1 429 X\r\nContent-Length: 9\r\n\r\nhalf', {}, 0],
  ])('%s', async (_, bytes, env, missing) => {
    const clock = new ManualClock();
    let received = '';
    const upstream = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.on('data', (chunk) => {
        if (received === '') socket.write(bytes);
        received += chunk.toString('latin1');
      });
    });
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void upstream.close());
    const apiUrl = `http://127.0.0.1:${String((upstream.address() as AddressInfo).port)}`;
    const { url, sidecar, eventsOf } = await startInProcess({ clock, apiUrl, env: { ...DRAIN, ...env } });
    const client = await openSocket(url);
    const response = readToEnd(client);
    client.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${String(4 + missing)}\r\n\r\nbody`);
    await until(() => received.endsWith('body'), 'the body at the upstream');
    if (missing === 0) await until(() => eventsOf('rate-limited').length === 1, 'the head of the refusal');
    await Promise.all([sidecar.drain(), clock.advance(2000)]);
    const { status, headers, body } = await response;
    expect([status, headers['retry-after'], headers.connection]).toEqual([504, undefined, 'close']);
    expect(JSON.parse(body.toString())).toMatchObject({
      code: 'UPSTREAM_TIMEOUT',
      detail: 'the sidecar shut down before the upstream responded; the upstream may have carried the call out',
      outcome: 'unknown',
    });
  });
});

it('a call that was reset and waits to be repeated gets UPSTREAM_RESET when the drain ends the wait', async () => {
  const clock = new ManualClock();
  const { url, sidecar, eventsOf } = await startInProcess({
    clock,
    respond: (_, response) => void response.destroy(),
    env: { ...DRAIN, SIDECAR_RETRY_TRUST_IDEMPOTENCY_KEY: 'true', SIDECAR_RATE: '0.1', SIDECAR_BURST: '1' },
  });
  const call = send(url, { ...POST, headers: { 'idempotency-key': '"k"' } });
  await until(() => eventsOf('attempt-ended').length === 1, 'the reset');
  await Promise.all([sidecar.drain(), clock.advance(2000)]);
  expect(await call).toMatchObject({ status: 502, code: 'UPSTREAM_RESET' });
  expect(eventsOf('queue-rejected')).toMatchObject([{ reason: 'draining' }]);
  expect(eventsOf('local-reply')).toMatchObject([{ code: 'UPSTREAM_RESET' }]);
});
