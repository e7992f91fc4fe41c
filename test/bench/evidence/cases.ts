/** Causes of a bare 503 or 403 that are no rate limit. */
import type { Random } from '../../../src/platform/clock.ts';
import type { SuspectStatus } from '../../../src/telemetry/events.ts';
import type { Call, Case, Load, Upstream } from './world.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Poisson arrivals. @param rateAt calls per second */
function poisson(rateAt: (at: number) => number, stepMs = 50): Load {
  return {
    kind: 'open',
    arrivals: (random, durationMs) => {
      const arrivals: number[] = [];
      let left = -Math.log(1 - random());
      for (let step = 0; step < durationMs; step += stepMs) {
        const perMs = rateAt(step) / 1000;
        let at = step;
        while (left <= (step + stepMs - at) * perMs) {
          at += left / perMs;
          arrivals.push(at);
          left = -Math.log(1 - random());
        }
        left -= (step + stepMs - at) * perMs;
      }
      return arrivals;
    },
  };
}

/** Bursts of a random size around `calls`, each `gapMs` between two of them, about each `everyMs`. */
function bursts(calls: number, everyMs: number, gapMs = 1, vary = 0.3): Load {
  return {
    kind: 'open',
    arrivals: (random, durationMs) => {
      const arrivals: number[] = [];
      for (let start = random() * everyMs; start < durationMs; start += everyMs * (1 + vary * (random() - 0.5))) {
        const size = Math.round(calls * (1 + vary * (2 * random() - 1)));
        let at = start;
        for (let call = 0; call < size; call++) arrivals.push((at += -Math.log(1 - random()) * gapMs));
      }
      return arrivals.sort((a, b) => a - b);
    },
  };
}

/** Evenly spaced calls, as a timer sends them. */
function even(perSecond: number): Load {
  return {
    kind: 'open',
    arrivals: (_, durationMs) =>
      Array.from({ length: Math.floor((durationMs * perSecond) / 1000) }, (__, call) => (call * 1000) / perSecond),
  };
}

function onOff(onRate: number, onMs: number, offRate: number, offMs: number): Load {
  return poisson((at) => (at % (onMs + offMs) < onMs ? onRate : offRate));
}

function serve(random: Random, meanMs = 20): number {
  return meanMs * (0.5 + random());
}

/** An upstream that fails by the clock or by chance. @returns by `fails`: the instant, the call and a random source */
function failing(
  fails: (at: number, call: Call, random: Random, inFlight: number) => boolean,
  status: SuspectStatus = 503,
  failMs = 1,
): (random: Random) => Upstream {
  return (random) => (at, call, inFlight) =>
    fails(at, call, random, inFlight)
      ? { sign: status, serviceMs: failMs }
      : { sign: 'accepted', serviceMs: serve(random) };
}

/** One of so many nodes is dead, and calls go to them by turns. */
function byTurns(nodes: number): (random: Random) => Upstream {
  return (random) => {
    let turn = 0;
    return () => (++turn % nodes === 0 ? { sign: 503, serviceMs: 1 } : { sign: 'accepted', serviceMs: serve(random) });
  };
}

/** Outages of a random length at random instants. */
function outages(minMs: number, maxMs: number, pauseMs: number): (random: Random) => Upstream {
  return (random) => {
    let [from, until] = [pauseMs * random(), 0];
    until = from + minMs + random() * (maxMs - minMs);
    return (at) => {
      while (at > until) {
        from = until + pauseMs * -Math.log(1 - random());
        until = from + minMs + random() * (maxMs - minMs);
      }
      return at >= from ? { sign: 503, serviceMs: 1 } : { sign: 'accepted', serviceMs: serve(random) };
    };
  };
}

/** Failures in runs: a two-state chain by time. */
function partialOutages(share: number, meanMs: number, pauseMs: number): (random: Random) => Upstream {
  return (random) => {
    let [isBad, until] = [false, pauseMs * random()];
    return (at) => {
      while (at > until) {
        isBad = !isBad;
        until += -Math.log(1 - random()) * (isBad ? meanMs : pauseMs);
      }
      return isBad && random() < share ? { sign: 503, serviceMs: 1 } : { sign: 'accepted', serviceMs: serve(random) };
    };
  };
}

/** A server with so many workers and a queue: the queue's time grows with the load, and what does not fit is a 503. */
function overloaded(
  perSecond: number,
  queueMs: number,
  timeoutMs: number,
  serviceMs = 20,
): (random: Random) => Upstream {
  return (random) => {
    let freeAt = 0;
    return (at) => {
      const waitMs = Math.max(0, freeAt - at);
      if (waitMs > queueMs) return { sign: 503, serviceMs: 1 };
      freeAt = Math.max(freeAt, at) + (1000 / perSecond) * (0.5 + random());
      if (waitMs > timeoutMs) return { sign: 'fault', serviceMs: timeoutMs };
      return { sign: 'accepted', serviceMs: waitMs + serve(random, serviceMs) };
    };
  };
}

const path = (method: string, form: string): Call => ({ method, path: form });

/** Mostly reads of resources, with now and then a burst to an endpoint that is forbidden. */
function forbiddenJob(at: number, random: Random): Call {
  const isJob = at % (5 * MINUTE) < 20 * SECOND;
  return isJob && random() < 0.7 ? path('POST', '/exports') : path('GET', `/quotes/${Math.floor(random() * 999)}`);
}

const FORBIDDEN = (_: number, { method }: Call): boolean => method === 'POST';

/** The daily course of traffic, in short. */
const daily = (mean: number) => (at: number) => mean * (1 + 0.9 * Math.sin((at / (20 * MINUTE)) * 2 * Math.PI));

const TRAFFIC: readonly (readonly [string, Load])[] = [
  ['steady 15/s', poisson(() => 15)],
  ['even 15/s', even(15)],
  ['bursts of 100', bursts(100, 30 * SECOND, 2)],
  ['on-off 30/s', onOff(30, 10 * SECOND, 0.2, 20 * SECOND)],
  ['daily 15/s', poisson(daily(15))],
  ['closed loop, 8 workers', { kind: 'closed', workers: 8, thinkMs: 500 }],
];

const CAUSES: readonly (readonly [
  string,
  (random: Random) => Upstream,
  Partial<Pick<Case, 'call' | 'retries' | 'repeats' | 'durationMs'>>,
])[] = [
  ['outages of 1 to 10 s', outages(SECOND, 10 * SECOND, MINUTE), { retries: 2 }],
  ['outages of 10 s to 5 min', outages(10 * SECOND, 5 * MINUTE, 5 * MINUTE), { retries: 2, durationMs: 2 * HOUR }],
  ['outages of 1 s, often', outages(SECOND, SECOND, 8 * SECOND), { retries: 2 }],
  ['10 s of every minute', failing((at) => at % MINUTE < 10 * SECOND), { retries: 2 }],
  ['3 s of every 10 s', failing((at) => at % (10 * SECOND) < 3 * SECOND), { retries: 2 }],
  ['one node of three by turns', byTurns(3), { retries: 2 }],
  ['one node of three at random', failing((_, __, random) => random() < 1 / 3), { retries: 2 }],
  [
    'one node of three, connect errors beside',
    (random) => {
      let turn = 0;
      return () => {
        const node = ++turn % 3;
        if (node !== 0) return { sign: 'accepted', serviceMs: serve(random) };
        return { sign: random() < 0.5 ? 503 : 'fault', serviceMs: 1 };
      };
    },
    { retries: 2 },
  ],
  ['random 1 %', failing((_, __, random) => random() < 0.01), { retries: 2 }],
  ['random 10 %', failing((_, __, random) => random() < 0.1), { retries: 2 }],
  ['random 30 %', failing((_, __, random) => random() < 0.3), { retries: 2 }],
  [
    'random 5 %, repeated at once',
    failing((_, __, random) => random() < 0.05),
    { repeats: { times: 5, afterMs: 2 }, retries: 1 },
  ],
  [
    'random 5 %, repeated each second',
    failing((_, __, random) => random() < 0.05),
    { repeats: { times: 10, afterMs: 1000 } },
  ],
  ['random 30 % for 1 min of 5', partialOutages(0.3, MINUTE, 4 * MINUTE), { retries: 3 }],
  ['random 60 % for 10 s of 60', partialOutages(0.6, 10 * SECOND, 50 * SECOND), { retries: 3 }],
  [
    'random 60 % for 10 s of 60, repeated at once',
    partialOutages(0.6, 10 * SECOND, 50 * SECOND),
    { repeats: { times: 5, afterMs: 2 }, retries: 3 },
  ],
  ['one node of two by turns', byTurns(2), { retries: 2 }],
  ['random, more by day', failing((at, _, random) => random() < 0.02 * daily(10)(at)), { retries: 2 }],
  ['overload beyond 12/s', overloaded(12, 2 * SECOND, 1500), { retries: 1 }],
  ['overload beyond 12/s, calls of 200 ms', overloaded(12, 2 * SECOND, Infinity, 200), { retries: 1 }],
  ['overload beyond 12/s, no timeouts', overloaded(12, 2 * SECOND, Infinity), { retries: 1 }],
  ['403 on an endpoint, in jobs', failing(FORBIDDEN, 403), { call: forbiddenJob }],
  [
    '403 on a third of the resources',
    failing((_, { path: of }) => Number(of.split('/')[2]) % 3 === 0, 403),
    { call: (_, random) => path('GET', `/quotes/${Math.floor(random() * 999)}`) },
  ],
  ['403 on a third, in jobs', failing((at, _, random) => at % (5 * MINUTE) < 20 * SECOND && random() < 0.5, 403), {}],
  ['maintenance of 20 min each hour', failing((at) => at % HOUR > 40 * MINUTE), { retries: 2, durationMs: 4 * HOUR }],
  ['deploys: 5 s each 10 min', failing((at) => at % (10 * MINUTE) < 5 * SECOND), { retries: 2, durationMs: 4 * HOUR }],
];

/** Each cause with each traffic. */
export const CASES: readonly Case[] = CAUSES.flatMap(([name, upstream, more]) =>
  TRAFFIC.map(([traffic, load]) => ({ name: `${name}, ${traffic}`, load, upstream, durationMs: HOUR, ...more })),
);
