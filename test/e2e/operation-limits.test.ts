/**
 * Limits by method and path that we did not write, in nginx and in HAProxy, with learned lanes: three times as many POSTs as they let through
 * must not slow the GETs, which stay below their own limits. Every response is compared with what was sent.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { call } from '../support/calls.ts';
import { startHaproxy } from '../support/haproxy.ts';
import { startNginx } from '../support/nginx.ts';
import { echo, type RespondTo, startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

const LOAD_MS = 9_000;
/** From here on the lane should be known. */
const SETTLED_MS = 3_000;
const GET_PATHS = ['/quotes', '/claims', '/offers', '/customers'];
const GET_INTERVAL_MS = 100;
const POST_INTERVAL_MS = 66;
/** Behind the POSTs a GET would wait for up to its deadline; the machine of the tests may be slow. */
const SLOWEST_GET_MS = 400;

const respond: RespondTo = (request, response, index) =>
  request.method === 'POST' ? echo(request, response, index) : void response.end(`response to ${request.path}`);

interface Limiter extends AsyncDisposable {
  readonly url: string;
}

/** Each lets five calls a second of an operation through. */
const LIMITERS: readonly [string, (upstream: string) => Promise<Limiter>][] = [
  ['nginx limit_req', (upstream) => startNginx({ rate: '5r/s', burst: 3, key: '$request_method$uri', upstream })],
  ['HAProxy stick table', (upstream) => startHaproxy({ requests: 10, seconds: 2, byOperation: true, upstream })],
];

describe('a limit of each method and path', () => {
  it.each(LIMITERS)('of %s slows no other operation', async (name, start) => {
    await using tokens = await startTokenServer();
    await using upstream = await startRecordingUpstream(respond);
    await using limiter = await start(upstream.url);
    const own = { SIDECAR_THROTTLE_LANES: 'true', SIDECAR_DEADLINE_MS: '2000' };
    const env = { ...baseSettings(limiter.url, tokens.url, newCredential()), ...own };
    await using sidecar = await startSidecar({ name: `operations-${name.replace(/\W+/g, '-')}`, env });
    await waitUntilReady(sidecar);

    const startedAt = performance.now();
    const [gets, posts] = await Promise.all([
      offer(GET_INTERVAL_MS, async (index) => {
        const path = GET_PATHS[index % GET_PATHS.length] ?? '';
        const sentAt = performance.now();
        const { status, text } = await call(`${sidecar.proxyUrl}${path}?${String(index)}`);
        expect([status, text]).toEqual([200, `response to ${path}?${String(index)}`]);
        return { sentAt, tookMs: performance.now() - sentAt };
      }),
      offer(POST_INTERVAL_MS, async (index) => {
        const body = `body ${String(index)} `.repeat(200);
        const { status, text } = await call(`${sidecar.proxyUrl}/policies`, { method: 'POST', body });
        if (status === 200) expect(text).toBe(body);
        return status;
      }),
    ]);

    const settled = gets.filter(({ sentAt }) => sentAt >= startedAt + SETTLED_MS).map(({ tookMs }) => tookMs);
    settled.sort((one, other) => one - other);
    const p99 = settled[Math.floor(settled.length * 0.99)] ?? Infinity;
    const served = posts.filter((status) => status === 200).length;
    const { throttle } = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as { throttle: { lanes: unknown } };
    console.info(
      `${name}: GET p99 ${p99.toFixed(0)} ms, ${served} of ${posts.length} POSTs served, ${JSON.stringify(throttle.lanes)}`,
    );
    expect(throttle.lanes).toMatchObject([{ operations: ['POST /policies'] }]);
    expect(p99).toBeLessThan(SLOWEST_GET_MS);
    expect(served).toBeGreaterThan((0.5 * 5 * LOAD_MS) / 1000);
    expect(served).toBeLessThan(posts.length);
  });
});

/** Evenly. @returns when all calls have ended */
async function offer<T>(intervalMs: number, make: (index: number) => Promise<T>): Promise<T[]> {
  const startedAt = performance.now();
  const calls: Promise<T>[] = [];
  for (let index = 0; index * intervalMs < LOAD_MS; index++) {
    await sleep(Math.max(0, startedAt + index * intervalMs - performance.now()));
    calls.push(make(index));
  }
  return Promise.all(calls);
}
