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
import { WAIT_TIMEOUT_MS } from '../support/until.ts';

const LOAD_MS = 9_000;
/** From here on the lane should be known. */
const SETTLED_MS = 3_000;
const GET_PATHS = ['/quotes', '/claims', '/offers', '/customers'];
const GET_INTERVAL_MS = 100;
const POST_INTERVAL_MS = 66;
/** Of the POSTs, whose queue would grow otherwise. */
const IMPATIENT = { 'x-sidecar-timeout-ms': '2000' };
/** Half of what a limiter lets through in that time. */
const LEAST_SERVED = (0.5 * 5 * LOAD_MS) / 1000;

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
    const own = { SIDECAR_THROTTLE_LANES: 'true' };
    const env = { ...baseSettings(limiter.url, tokens.url, newCredential()), ...own };
    await using sidecar = await startSidecar({ name: `operations-${name.replace(/\W+/g, '-')}`, env });
    await waitUntilReady(sidecar);

    const startedOn = new Date();
    const startedAt = performance.now();
    const servedAt: number[] = [];
    let isServedWell = false;
    let refused = 0;
    // A busy machine takes longer to learn, and to serve.
    const isOver = (): boolean => {
      const now = performance.now();
      isServedWell ||= servedAt.filter((at) => at > now - LOAD_MS).length > LEAST_SERVED;
      return now > startedAt + (isServedWell ? LOAD_MS : WAIT_TIMEOUT_MS);
    };
    await Promise.all([
      offer(GET_INTERVAL_MS, isOver, async (index) => {
        const path = GET_PATHS[index % GET_PATHS.length] ?? '';
        const { status, text } = await call(`${sidecar.proxyUrl}${path}?${String(index)}`);
        expect([status, text]).toEqual([200, `response to ${path}?${String(index)}`]);
      }),
      offer(POST_INTERVAL_MS, isOver, async (index) => {
        const body = `body ${String(index)} `.repeat(200);
        const { status, text } = await call(`${sidecar.proxyUrl}/policies`, {
          method: 'POST',
          body,
          headers: IMPATIENT,
        });
        if (status === 200) {
          expect(text).toBe(body);
          servedAt.push(performance.now());
        } else refused++;
      }),
    ]);

    const { throttle } = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as { throttle: { lanes: unknown } };
    await sidecar.stop();
    const gets = readWaits(sidecar.stdout(), 'GET', startedOn);
    const posts = readWaits(sidecar.stdout(), 'POST', startedOn);
    const getMs = gets[Math.floor(gets.length * 0.75)] ?? Number.NaN;
    const postMs = posts[Math.floor(posts.length / 2)] ?? Number.NaN;
    console.info(
      `${name}: three of four GETs waited up to ${getMs} ms, half of the POSTs up to ${postMs} ms, ${servedAt.length} POSTs served, ${refused} not, ${JSON.stringify(throttle.lanes)}`,
    );
    expect(throttle.lanes).toMatchObject([{ operations: ['POST /policies'] }]);
    // Behind the POSTs a GET would wait as long as they do.
    expect(getMs).toBeLessThan(postMs / 2);
    expect(isServedWell).toBe(true);
    expect(refused).toBeGreaterThan(0);
  });
});

/** Sends evenly. @returns when all calls have ended */
async function offer(intervalMs: number, isOver: () => boolean, send: (index: number) => Promise<void>): Promise<void> {
  const startedAt = performance.now();
  const calls: Promise<void>[] = [];
  for (let index = 0; !isOver(); index++) {
    await sleep(Math.max(0, startedAt + index * intervalMs - performance.now()));
    calls.push(send(index));
  }
  await Promise.all(calls);
}

/** How long requests waited for their turn, from the log: unlike their duration it does not depend on the machine. Sorted, milliseconds. */
function readWaits(log: string, method: string, from: Date): number[] {
  const lines = log.split('\n').filter((line) => line.includes('"msg":"request"') && line.includes(`"${method}"`));
  const requests = lines.map((line) => JSON.parse(line) as { readonly time: string; readonly queuedMs: number });
  const settled = requests.filter(({ time }) => Date.parse(time) > from.getTime() + SETTLED_MS);
  return settled.map(({ queuedMs }) => queuedMs).sort((one, other) => one - other);
}
