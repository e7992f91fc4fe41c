/**
 * `auto` in real time against rate limiters that we did not write, at half as much again as they let through: nginx with and without
 * a burst, HAProxy's stick table, and rate-limiter-flexible. None of them says a word about its limit.
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { describe, expect, it } from 'vitest';
import { call } from '../support/calls.ts';
import { startHaproxy } from '../support/haproxy.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { startNginx } from '../support/nginx.ts';
import { startRecordingUpstream, type RecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { type RunningSidecar, baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { seeded } from '../throttle/simulation.ts';

const LIMIT_PER_SECOND = 10;
const LOAD = 1.5;
const LOAD_MS = 40_000;
/** From here on a first idea of the limit should have been found. */
const SETTLED_MS = 15_000;

/** What stands in front of the API, and the instants at which it let calls through, of `performance.now()`. */
interface Limited extends AsyncDisposable {
  readonly url: string;
  readonly acceptedAt: () => readonly number[];
}

type StartLimiter = (upstream: RecordingUpstream) => Promise<Limited>;

/**
 * Low, because arrivals in real time are never twice the same: one run must not fail by bad luck. How good the governor is on the average is
 * measured in virtual time (test/throttle, `npm run bench:governor`).
 */
interface Expected {
  /** Of what the limit lets through, in the time after `SETTLED_MS`. */
  readonly goodput: number;
  /** Of all attempts, those at the start included. */
  readonly refusedShare: number;
}

const BEHIND = (upstream: RecordingUpstream) => () => upstream.requests.map(({ arrivedAt }) => arrivedAt);

const LIMITERS: readonly [string, StartLimiter, Expected][] = [
  [
    'nginx limit_req rate=10r/s',
    async (upstream) => {
      const nginx = await startNginx({ rate: '10r/s', upstream: upstream.url });
      return {
        url: nginx.url,
        acceptedAt: BEHIND(upstream),
        [Symbol.asyncDispose]: () => nginx[Symbol.asyncDispose](),
      };
    },
    // The worst of 300 seeds in virtual time has 0.26, at any jitter up to 100 ms.
    { goodput: 0.22, refusedShare: 0.15 },
  ],
  [
    'nginx limit_req rate=10r/s burst=20 nodelay',
    async (upstream) => {
      const nginx = await startNginx({ rate: '10r/s', burst: 20, upstream: upstream.url });
      return {
        url: nginx.url,
        acceptedAt: BEHIND(upstream),
        [Symbol.asyncDispose]: () => nginx[Symbol.asyncDispose](),
      };
    },
    { goodput: 0.8, refusedShare: 0.1 },
  ],
  [
    'HAProxy http_req_rate(10s) above 100',
    async (upstream) => {
      const haproxy = await startHaproxy({ requests: 100, seconds: 10, upstream: upstream.url });
      return {
        url: haproxy.url,
        acceptedAt: BEHIND(upstream),
        [Symbol.asyncDispose]: () => haproxy[Symbol.asyncDispose](),
      };
    },
    { goodput: 0.15, refusedShare: 0.2 },
  ],
  ['rate-limiter-flexible, 100 points in 10 s', startWindowLimiter, { goodput: 0.35, refusedShare: 0.15 }],
];

/** A window that the first call opens. */
async function startWindowLimiter(): Promise<Limited> {
  const limiter = new RateLimiterMemory({ points: 100, duration: 10 });
  const acceptedAt: number[] = [];
  const server = createServer((_, response) => {
    const at = performance.now();
    void limiter.consume('client').then(
      () => {
        acceptedAt.push(at);
        response.end('{}');
      },
      () => response.writeHead(429).end(),
    );
  });
  const url = await listenOnLoopback(server);
  return { url, acceptedAt: () => acceptedAt, [Symbol.asyncDispose]: () => closeServer(server) };
}

/** Poisson arrivals; callers without a response at the end are not waited for. */
async function offerLoad(url: string, seed: number): Promise<void> {
  const random = seeded(seed);
  const endsAt = performance.now() + LOAD_MS;
  let nextAt = performance.now();
  while (nextAt < endsAt) {
    await sleep(Math.max(0, nextAt - performance.now()));
    void call(`${url}/policies`, { method: 'POST', body: '{}' }).catch((error: unknown) => error);
    nextAt += (-Math.log(1 - random()) * 1000) / (LIMIT_PER_SECOND * LOAD);
  }
}

/** The sum of the series of this name whose labels match. */
async function readCounter(sidecar: RunningSidecar, name: string, labels = /./): Promise<number> {
  const text = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`bearer_sidecar_${name}{`) && labels.test(line));
  expect(lines.length).toBeGreaterThan(0);
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

async function readLearned(sidecar: RunningSidecar): Promise<string> {
  const status = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as { throttle: { learned: unknown } };
  return JSON.stringify(status.throttle.learned);
}

describe.concurrent('against a limit of 10 a second that hides', () => {
  it.each(LIMITERS)('%s', async (name, start, expected) => {
    await using tokens = await startTokenServer();
    await using upstream = await startRecordingUpstream();
    await using limited = await start(upstream);
    const env = baseSettings(limited.url, tokens.url, newCredential());
    await using sidecar = await startSidecar({ name: `limiters-${name.replace(/\W+/g, '-')}`, env });
    await waitUntilReady(sidecar);

    const startedAt = performance.now();
    await offerLoad(sidecar.proxyUrl, 1);
    const [attempts, refused, learned] = await Promise.all([
      readCounter(sidecar, 'upstream_attempts_total'),
      readCounter(sidecar, 'upstream_attempts_total', /outcome="rate_limited"/),
      readLearned(sidecar),
    ]);
    const accepted = limited.acceptedAt().filter((at) => at >= startedAt + SETTLED_MS && at < startedAt + LOAD_MS);
    const perSecond = accepted.length / ((LOAD_MS - SETTLED_MS) / 1000);
    const share = refused / attempts;
    console.info(
      `${name}: ${perSecond.toFixed(2)} of ${LIMIT_PER_SECOND}/s, ${refused} of ${attempts} refused (${(share * 100).toFixed(1)} %), learned ${learned}`,
    );
    expect(perSecond / LIMIT_PER_SECOND).toBeGreaterThan(expected.goodput);
    expect(share).toBeLessThan(expected.refusedShare);
    expect(refused).toBeGreaterThan(0);
  });
});
