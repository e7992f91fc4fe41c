/**
 * Upstreams on loopback with a limit that they do not state: nginx, HAProxy, rate-limiter-flexible, and servers of our own with the
 * algorithms of Cloudflare and Kong. Each compares the bodies that it receives and keeps the instants of accepted calls. Counting refused calls is left to the sidecar's metrics.
 */
import { createServer } from 'node:http';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { startHaproxy } from '../../support/haproxy.ts';
import { closeServer, listenOnLoopback } from '../../support/loopback.ts';
import { startNginx } from '../../support/nginx.ts';
import {
  createVerificationStats,
  sendRequestedResponse,
  type VerificationStats,
  verifyRequest,
} from '../../support/witness-upstream.ts';
import { create, type LimiterRule } from '../governor/limiters.ts';

/** One limit of the benchmark. */
export interface HttpLimit {
  /** For `--only`. */
  readonly name: string;
  readonly title: string;
  /** Sustained calls per second. */
  readonly perSecond: number;
  /** What it lets through repeats after this time, so that whole multiples of it are measured; milliseconds. */
  readonly periodMs: number;
  /** What starts a period: a multiple of it on the clock of `performance.now()`, the first call after the end of the last, or nothing. */
  readonly periodStart: 'clock' | 'first-call' | undefined;
  start(): Promise<LimitedUpstream>;
}

export interface LimitedUpstream extends AsyncDisposable {
  readonly url: string;
  /** Of `performance.now()`. */
  readonly acceptedAt: readonly number[];
  /** The bodies of all calls that reached a server of ours. */
  readonly stats: VerificationStats;
}

/** Whether a call is let through; `at` is of `performance.now()`. */
type Admit = (at: number) => boolean | Promise<boolean>;

export const LIMITS: readonly HttpLimit[] = [
  {
    name: 'cloudflare',
    title: 'Cloudflare, sliding counter, 100 per 10 s',
    perSecond: 10,
    periodMs: 10_000,
    periodStart: 'clock',
    start: () => startUpstream(admitBy({ kind: 'sliding-counter', calls: 100, windowMs: 10_000 })),
  },
  {
    name: 'nginx',
    title: 'nginx `limit_req` 10r/s burst=20 nodelay',
    perSecond: 10,
    periodMs: 1000,
    periodStart: undefined,
    start: () => startBehind((upstream) => startNginx({ rate: '10r/s', burst: 20, upstream })),
  },
  {
    name: 'haproxy',
    title: 'HAProxy `http_req_rate(10s)` above 100',
    perSecond: 10,
    periodMs: 10_000,
    periodStart: undefined,
    start: () => startBehind((upstream) => startHaproxy({ requests: 100, seconds: 10, upstream })),
  },
  {
    name: 'rate-limiter-flexible',
    title: 'rate-limiter-flexible, 100 points in 7 s',
    perSecond: 100 / 7,
    periodMs: 7000,
    periodStart: 'first-call',
    start: () => startUpstream(admitByPoints(100, 7)),
  },
  {
    name: 'kong',
    title: 'Kong, 10 per second and 300 per minute by the clock',
    perSecond: 5,
    periodMs: 60_000,
    periodStart: 'clock',
    start: () =>
      startUpstream(
        admitBy({
          kind: 'all-of',
          limiters: [
            { kind: 'fixed-window', calls: 10, windowMs: 1000 },
            { kind: 'fixed-window', calls: 300, windowMs: 60_000 },
          ],
        }),
      ),
  },
];

function admitBy(limiter: LimiterRule): Admit {
  const limit = create({ limiter });
  return (at) => limit.evaluate(at, 0).accepted;
}

/** A window that the first call opens. */
function admitByPoints(points: number, duration: number): Admit {
  const limiter = new RateLimiterMemory({ points, duration });
  return () =>
    limiter.consume('client').then(
      () => true,
      () => false,
    );
}

export async function startUpstream(admit: Admit): Promise<LimitedUpstream> {
  const acceptedAt: number[] = [];
  const stats = createVerificationStats();
  const server = createServer((message, response) => {
    const at = performance.now();
    const attempt = verifyRequest(message, stats);
    void Promise.all([admit(at), attempt]).then(([isAccepted, received]) => {
      if (isAccepted) acceptedAt.push(at);
      if (isAccepted && received !== undefined) sendRequestedResponse(received.stated.id, message, response);
      else response.writeHead(429).end();
    });
  });
  // No idle connection is closed under a request.
  server.keepAliveTimeout = 600_000;
  return { url: await listenOnLoopback(server), acceptedAt, stats, [Symbol.asyncDispose]: () => closeServer(server) };
}

/** The limit is that of the server in front. */
async function startBehind(
  startFront: (upstreamUrl: string) => Promise<AsyncDisposable & { readonly url: string }>,
): Promise<LimitedUpstream> {
  const upstream = await startUpstream(() => true);
  const front = await startFront(upstream.url);
  return {
    ...upstream,
    url: front.url,
    [Symbol.asyncDispose]: async () => {
      await front[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}
