/**
 * What the client gets when no further attempt is made: the result of the last attempt that was sent, however the request ends. A call
 * that may have been carried out is never reported as one that was not.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startInProcess, until } from '../sidecar/in-process.ts';
import { send } from '../sidecar/send.ts';
import { startProxy, type Proxy } from '../listener/proxy.ts';
import { makeCertificates } from '../support/certificates.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd, type RawResponse } from '../support/raw-client.ts';
import { ScriptedUpstream, STEPS, type Step } from './scripted-upstream.ts';

const ATTEMPTS = 3;
const DEADLINE_MS = 600_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Less than any wait of these requests. */
const CLOCK_STEP_MS = 40;

/** What happens when every attempt of the script has been made. In a wait no attempt is under way. */
const ENDS = ['success', 'time-out', 'deadline', 'drain', 'drain in a wait'] as const;

interface Plan {
  readonly method: 'POST' | 'PUT';
  readonly steps: readonly Step[];
  readonly end: (typeof ENDS)[number];
  readonly isTokenReplaced: boolean;
}

const plans: fc.Arbitrary<Plan> = fc
  .record({
    method: fc.constantFrom('POST', 'PUT'),
    steps: fc.array(fc.constantFrom(...STEPS), { maxLength: 5 }),
    end: fc.constantFrom(...ENDS),
    isTokenReplaced: fc.boolean(),
  })
  // A replay does not wait, and neither does the first attempt.
  .filter(({ steps, end }) => end !== 'drain in a wait' || steps.at(-1)?.endsWith('401') === false);

type Reply = number | string;

/** The rule: the status of a response of the upstream, or the code of a local reply. */
function predict({ method, steps, end, isTokenReplaced }: Plan): Reply {
  let last: Reply | undefined;
  let counted = 0;
  let hasReplayed = false;
  for (const step of steps) {
    const status = Number(/\d+/.exec(step)?.[0] ?? 0);
    if (step !== 'refused') last = status === 0 ? 'UPSTREAM_RESET' : status;
    if (status === 429) continue;
    counted++;
    if (status === 401) {
      if (hasReplayed || !isTokenReplaced) return status;
      hasReplayed = true;
    } else if ((step !== 'refused' && method === 'POST') || counted >= ATTEMPTS) return last ?? 'UPSTREAM_UNREACHABLE';
  }
  if (end === 'success') return 200;
  return end === 'drain in a wait' ? (last ?? 'DRAINING') : 'UPSTREAM_TIMEOUT';
}

function countEvents({ events }: Proxy, kind: string, outcome?: string): number {
  return events.filter(
    (event) => event.kind === kind && (!outcome || ('outcome' in event && event.outcome === outcome)),
  ).length;
}

function endAttempt(end: Plan['end'], proxy: Proxy, clock: ManualClock): Promise<void> | void {
  if (end === 'time-out') return clock.advance(REQUEST_TIMEOUT_MS);
  if (end === 'deadline') return clock.advance(DEADLINE_MS);
  if (end !== 'success') cutByDrain(proxy);
}

/** As sidecar/drain does. */
function cutByDrain({ throttle, server }: Proxy): void {
  throttle.shutDown();
  server.abortAll();
}

async function play(plan: Plan): Promise<{ readonly reply: Reply; readonly proxy: Proxy }> {
  const { method, steps, end, isTokenReplaced } = plan;
  const clock = new ManualClock();
  await using upstream = await ScriptedUpstream.start(steps, end === 'success');
  const requestTimeoutMs = end === 'deadline' ? 2 * DEADLINE_MS : REQUEST_TIMEOUT_MS;
  const options = { clock, attempts: ATTEMPTS, deadlineMs: DEADLINE_MS, requestTimeoutMs };
  await using proxy = await startProxy(upstream.url, options);
  proxy.tokens.isReplaced = isTokenReplaced;
  const reachesEnd = predict({ ...plan, end: 'success' }) === 200;
  const client = await openSocket(proxy.url);
  client.write(`${method} / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody`);
  let response: RawResponse | undefined;
  void readToEnd(client).then((received) => (response = received));
  let refused = 0;
  while (response === undefined) {
    await new Promise(setImmediate);
    for (; refused < countEvents(proxy, 'attempt-ended', 'unreachable'); refused++) await upstream.advance();
    const isWaiting = countEvents(proxy, 'permit-granted') === countEvents(proxy, 'attempt-ended');
    if (!isWaiting) {
      if (upstream.hasLast) await endAttempt(end, proxy, clock);
    } else if (end === 'drain in a wait' && reachesEnd && upstream.isOver) cutByDrain(proxy);
    else await clock.advance(CLOCK_STEP_MS);
  }
  await proxy.server.activeRequests.whenIdle();
  return { reply: readReply(response), proxy };
}

function readReply({ status, headers, body }: RawResponse): Reply {
  if (headers['proxy-status'] === undefined) return status;
  return (JSON.parse(body.toString()) as { code: string }).code;
}

/** Each of them was reported as not carried out before, although it may have been. */
const EXAMPLES: readonly Plan[] = [
  { method: 'POST', steps: ['429'], end: 'time-out', isTokenReplaced: true },
  { method: 'POST', steps: ['429', 'reset'], end: 'success', isTokenReplaced: true },
  { method: 'POST', steps: ['401', 'reset'], end: 'success', isTokenReplaced: true },
  { method: 'POST', steps: ['401', 'cut 429'], end: 'deadline', isTokenReplaced: true },
  { method: 'POST', steps: [], end: 'drain', isTokenReplaced: true },
  { method: 'PUT', steps: ['503', 'reset'], end: 'drain in a wait', isTokenReplaced: true },
];

describe('the result of the last attempt that was sent', () => {
  it('is what the client gets, whatever comes before and however the request ends', async () => {
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
    const { url, sidecar, told, endings } = await startInProcess({
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
    expect(told('permit-granted')).toHaveLength(refusals);
    if (end === 'drain') await Promise.all([sidecar.drain(), clock.advance(2000)]);
    else await clock.advance(1000);
    expect(await call).toMatchObject({ status, code });
    expect(await endings(1)).toMatchObject([{ code: status, attempts: refusals + 1 }]);
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
    const { url, sidecar, told } = await startInProcess({ clock, apiUrl, env: { ...DRAIN, ...env } });
    const client = await openSocket(url);
    const response = readToEnd(client);
    client.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${String(4 + missing)}\r\n\r\nbody`);
    await until(() => received.endsWith('body'), 'the body at the upstream');
    if (missing === 0) await until(() => told('rate-limited').length === 1, 'the head of the refusal');
    await Promise.all([sidecar.drain(), clock.advance(2000)]);
    const { status, headers, body } = await response;
    expect([status, headers['retry-after'], headers.connection]).toEqual([504, undefined, 'close']);
    expect(JSON.parse(body.toString())).toMatchObject({
      code: 'UPSTREAM_TIMEOUT',
      detail: 'the sidecar shut down before the upstream responded',
    });
  });
});

it('a call that was reset and waits to be repeated gets UPSTREAM_RESET when the drain ends the wait', async () => {
  const clock = new ManualClock();
  const { url, sidecar, told } = await startInProcess({
    clock,
    answer: (_, response) => void response.destroy(),
    env: { ...DRAIN, SIDECAR_RETRY_TRUST_IDEMPOTENCY_KEY: 'true', SIDECAR_RATE: '0.1', SIDECAR_BURST: '1' },
  });
  const call = send(url, { ...POST, headers: { 'idempotency-key': '"k"' } });
  await until(() => told('attempt-ended').length === 1, 'the reset');
  await Promise.all([sidecar.drain(), clock.advance(2000)]);
  expect(await call).toMatchObject({ status: 502, code: 'UPSTREAM_RESET' });
  expect(told('queue-rejected')).toMatchObject([{ reason: 'draining' }]);
  expect(told('local-reply')).toMatchObject([{ code: 'UPSTREAM_RESET' }]);
});
