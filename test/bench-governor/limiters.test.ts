import fc from 'fast-check';
import pThrottle from 'p-throttle';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { parseList } from 'structured-headers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { HintStyle } from '../bench/governor/hints.ts';
import type { LimiterModel } from '../bench/governor/limiter-model.ts';
import { create, DAY_STARTS_AT, type Limiter, type LimiterRule } from '../bench/governor/limiters.ts';
import { countPossible } from '../bench/governor/possible.ts';
import { maxCountInWindow } from '../support/windows.ts';

const CALLS = 7;
const WINDOW_MS = 1000;

/** Gaps of every size, many of them 0. */
const arrivals = fc
  .array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 900 })), {
    minLength: 1,
    maxLength: 150,
  })
  .map((gaps) => {
    let at = 0;
    return gaps.map((gap) => (at += gap));
  });

const phases = fc.integer({ min: 0, max: 3 * WINDOW_MS });

function acceptedOf(limiter: Limiter, instants: readonly number[]): number[] {
  return instants.filter((at) => limiter.evaluate(at, 0).accepted);
}

function acceptedBy(rule: LimiterRule, instants: readonly number[]): number[] {
  return acceptedOf(create({ limiter: rule }), instants);
}

/** Plays a call. */
function acceptsAt(model: LimiterModel, at: number): boolean {
  const isAccepted = model.nextAt(at, 0) <= at;
  if (isAccepted) model.take(at);
  else model.refuse(at);
  return isAccepted;
}

const RULES: readonly LimiterRule[] = [
  { kind: 'fixed-window', calls: CALLS, windowMs: WINDOW_MS, phaseMs: 370 },
  { kind: 'first-call-window', calls: CALLS, windowMs: WINDOW_MS },
  { kind: 'sliding-log', calls: CALLS, windowMs: WINDOW_MS },
  { kind: 'sliding-counter', calls: CALLS, windowMs: WINDOW_MS, phaseMs: 120 },
  { kind: 'slotted-window', calls: CALLS, windowMs: WINDOW_MS, slots: 5, phaseMs: 130 },
  { kind: 'token-bucket', perSecond: 9, burst: 4 },
  { kind: 'gcra', perSecond: 9, burst: 3 },
  { kind: 'gcra', perSecond: 90, burst: 1, stepMs: 1 },
  { kind: 'bulk-refill', calls: 3, everyMs: 400, burst: 8, phaseMs: 90 },
  {
    kind: 'all-of',
    limiters: [
      { kind: 'fixed-window', calls: 3, windowMs: 300 },
      { kind: 'sliding-log', calls: CALLS, windowMs: WINDOW_MS },
    ],
  },
  {
    kind: 'steps',
    steps: [
      { fromMs: 0, limiter: { kind: 'token-bucket', perSecond: 9, burst: 4 } },
      { fromMs: 2500, limiter: { kind: 'fixed-window', calls: 2, windowMs: WINDOW_MS } },
    ],
  },
];

describe('no limiter accepts more than its quota', () => {
  it('fixed window: in any window of the server’s clock', () => {
    fc.assert(
      fc.property(arrivals, phases, fc.boolean(), (instants, phaseMs, countsRefused) => {
        const rule = { kind: 'fixed-window', calls: CALLS, windowMs: WINDOW_MS, phaseMs, countsRefused } as const;
        const counts = new Map<number, number>();
        for (const at of acceptedBy(rule, instants)) {
          const window = Math.floor((at + phaseMs) / WINDOW_MS);
          counts.set(window, (counts.get(window) ?? 0) + 1);
        }
        expect(Math.max(0, ...counts.values())).toBeLessThanOrEqual(CALLS);
      }),
    );
  });

  it('sliding log: in any window', () => {
    fc.assert(
      fc.property(arrivals, fc.boolean(), (instants, countsRefused) => {
        const rule = { kind: 'sliding-log', calls: CALLS, windowMs: WINDOW_MS, countsRefused } as const;
        expect(maxCountInWindow(acceptedBy(rule, instants), WINDOW_MS)).toBeLessThanOrEqual(CALLS);
      }),
    );
  });

  it('sliding counter: by its own estimate', () => {
    fc.assert(
      fc.property(arrivals, (instants) => {
        const accepted = acceptedBy({ kind: 'sliding-counter', calls: CALLS, windowMs: WINDOW_MS }, instants);
        for (const at of accepted) {
          const window = Math.floor(at / WINDOW_MS);
          const until = accepted.filter((other) => other <= at);
          const used = until.filter((other) => Math.floor(other / WINDOW_MS) === window).length;
          const before = until.filter((other) => Math.floor(other / WINDOW_MS) === window - 1).length;
          expect(before * (1 - (at / WINDOW_MS - window)) + used).toBeLessThanOrEqual(CALLS + 1e-9);
        }
      }),
    );
  });

  it('window of slots: in any sequence of as many slots', () => {
    fc.assert(
      fc.property(arrivals, phases, fc.boolean(), (instants, phaseMs, countsRefused) => {
        const slots = 5;
        const quota = { calls: CALLS, windowMs: WINDOW_MS, phaseMs, countsRefused };
        const accepted = acceptedBy({ kind: 'slotted-window', ...quota, slots }, instants);
        const used = accepted.map((at) => Math.floor(((at + phaseMs) * slots) / WINDOW_MS));
        for (const slot of used)
          expect(used.filter((other) => other >= slot && other < slot + slots).length).toBeLessThanOrEqual(CALLS);
      }),
    );
  });

  it('token bucket and GCRA: burst plus rate times time, between any two calls', () => {
    fc.assert(
      fc.property(arrivals, fc.constantFrom('token-bucket', 'gcra'), (instants, kind) => {
        const accepted = acceptedBy({ kind, perSecond: 9, burst: 4 }, instants);
        for (const [first, from] of accepted.entries())
          for (const [last, to] of accepted.entries())
            if (last >= first) expect(last - first + 1).toBeLessThanOrEqual(4 + ((to - from) * 9) / 1000 + 1e-6);
      }),
      { numRuns: 40 },
    );
  });

  it('bulk refill: what it holds plus all refills, between any two calls', () => {
    fc.assert(
      fc.property(arrivals, phases, (instants, phaseMs) => {
        const [calls, everyMs, burst] = [3, 400, 8];
        const accepted = acceptedBy({ kind: 'bulk-refill', calls, everyMs, burst, phaseMs }, instants);
        const refillsUntil = (at: number): number => Math.floor((at + phaseMs) / everyMs);
        for (const [first, from] of accepted.entries())
          for (const [last, to] of accepted.entries())
            if (last >= first)
              expect(last - first + 1).toBeLessThanOrEqual(burst + (refillsUntil(to) - refillsUntil(from)) * calls);
      }),
      { numRuns: 40 },
    );
  });

  it('with another client: both together keep the limit, and that client plays the same part each time', () => {
    fc.assert(
      fc.property(arrivals, fc.nat(), (instants, seed) => {
        const limiter: LimiterRule = { kind: 'sliding-log', calls: CALLS, windowMs: WINDOW_MS };
        const shared: LimiterRule = { kind: 'tenant', limiter, share: 0.4, seed };
        const accepted = acceptedBy(shared, instants);
        expect(maxCountInWindow(accepted, WINDOW_MS)).toBeLessThanOrEqual(CALLS);
        expect(acceptedBy(shared, instants)).toEqual(accepted);
      }),
    );
  });

  it('concurrency: counts the calls in flight', () => {
    const limiter = create({ limiter: { kind: 'concurrency', calls: 3 }, meanServiceMs: 100 });
    expect([0, 1, 2, 3, 4].map((inFlight) => limiter.evaluate(5, inFlight).accepted)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
    expect(limiter.capacity(0, 1000)).toBeCloseTo(30);
  });

  it.each(RULES)('$kind: capacity plus burst in the whole run', (rule) => {
    fc.assert(
      fc.property(arrivals, (instants) => {
        const limiter = create({ limiter: rule });
        const accepted = acceptedOf(limiter, instants);
        const last = instants.at(-1) ?? 0;
        expect(accepted.length).toBeLessThanOrEqual(limiter.capacity(0, last) + limiter.model.burst + 1e-6);
      }),
    );
  });
});

describe('nextAt', () => {
  it.each(RULES)('$kind: a call is accepted at that instant, and refused before it', (rule) => {
    fc.assert(
      fc.property(arrivals, fc.double({ min: 0, max: 0.999, noNaN: true }), (instants, part) => {
        // Two equal limiters with the same calls: one gets the next call early, the other in time.
        const [early, inTime] = [create({ limiter: rule }), create({ limiter: rule })];
        for (const limiter of [early, inTime]) for (const at of instants) limiter.evaluate(at, 0);
        const now = instants.at(-1) ?? 0;
        const next = inTime.model.nextAt(now, 0);
        const tooEarly = now + (next - now) * part;
        if (next - tooEarly > 1) expect(early.evaluate(tooEarly, 0).accepted).toBe(false);
        expect(inTime.evaluate(next, 0).accepted).toBe(true);
      }),
    );
  });

  it('does not change the limiter', () => {
    fc.assert(
      fc.property(arrivals, fc.constantFrom(...RULES), (instants, rule) => {
        const [queried, other] = [create({ limiter: rule }), create({ limiter: rule })];
        const accepted = instants.map((at) => {
          queried.model.nextAt(at + 5000, 0);
          queried.model.allowance(at);
          return queried.evaluate(at, 0).accepted;
        });
        expect(accepted).toEqual(instants.map((at) => other.evaluate(at, 0).accepted));
      }),
    );
  });
});

describe('combined rules', () => {
  it('a sliding window that counts refused calls stays closed under load', () => {
    const every200 = Array.from({ length: 50 }, (_, index) => index * 200);
    const rule = { kind: 'sliding-log', calls: 2, windowMs: WINDOW_MS } as const;
    expect(acceptedBy({ ...rule, countsRefused: true }, every200)).toEqual([0, 200]);
    expect(acceptedBy(rule, every200)).toHaveLength(20);
  });

  it('a ban refuses all calls for its duration with its own status, and then ends', () => {
    const limiter = create({
      limiter: {
        kind: 'ban',
        limiter: { kind: 'fixed-window', calls: 1, windowMs: 100 },
        refusals: 2,
        withinMs: 1000,
        banMs: 5000,
        status: 403,
      },
      hint: 'retry-after-seconds',
    });
    expect(limiter.evaluate(0, 0)).toMatchObject({ accepted: true });
    expect(limiter.evaluate(10, 0)).toMatchObject({ accepted: false, status: 429 });
    expect(limiter.evaluate(20, 0)).toMatchObject({ accepted: false, status: 429, headers: { 'retry-after': '5' } });
    expect(limiter.evaluate(4000, 0)).toMatchObject({ accepted: false, status: 403, headers: { 'retry-after': '2' } });
    expect(limiter.evaluate(5020, 0)).toMatchObject({ accepted: true, status: 200 });
    expect(limiter.evaluate(5030, 0)).toMatchObject({ accepted: false, status: 429 });
  });

  it('refusals further apart than withinMs cause no ban', () => {
    const limiter = create({
      limiter: {
        kind: 'ban',
        limiter: { kind: 'fixed-window', calls: 1, windowMs: 1000 },
        refusals: 2,
        withinMs: 900,
        banMs: 5000,
      },
    });
    const accepted = [0, 10, 1000, 1010, 2000, 2010, 3000].map((at) => limiter.evaluate(at, 0).accepted);
    expect(accepted).toEqual([true, false, true, false, true, false, true]);
  });

  it('a step changes limit and rate at its instant', () => {
    const limiter = create({ limiter: RULES.at(-1) ?? { kind: 'concurrency', calls: 1 } });
    expect(limiter.model.rateAt(2499) * 1000).toBeCloseTo(9);
    expect(limiter.model.rateAt(2500) * 1000).toBeCloseTo(2);
    expect(limiter.capacity(2000, 4000)).toBeCloseTo(4.5 + 3);
  });
});

describe('calls of different cost', () => {
  const COSTS = [
    { permits: 1, share: 0.6 },
    { permits: 5, share: 0.4 },
  ];

  it('take as many permits as they cost', () => {
    const costs = [{ permits: 3, share: 1 }];
    const limiter: LimiterRule = { kind: 'fixed-window', calls: CALLS, windowMs: WINDOW_MS };
    const { model } = create({ limiter: { kind: 'weighted', limiter, costs, seed: 1 } });
    expect([0, 10, 20, 1000].map((at) => acceptsAt(model, at))).toEqual([true, true, false, true]);
    expect(model.nextAt(1010, 0)).toBe(1010);
    model.take(1010);
    expect(model.nextAt(1020, 0)).toBe(2000);
    expect(model.capacity(0, 3000)).toBe(CALLS);
  });

  it('get on average the rate that their mean cost allows, and the same costs each time', () => {
    const limiter: LimiterRule = { kind: 'token-bucket', perSecond: 9, burst: 6 };
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const rule: LimiterRule = { kind: 'weighted', limiter, costs: COSTS, seed };
        const [one, other] = [create({ limiter: rule }).model, create({ limiter: rule }).model];
        let at = 0;
        let count = 0;
        for (; at < 1_000_000; at = one.nextAt(at, 0), count++) {
          expect(other.nextAt(at, 0)).toBe(at);
          for (const model of [one, other]) model.take(at);
        }
        expect(Math.abs(count / one.capacity(0, at) - 1)).toBeLessThan(0.08);
      }),
      { numRuns: 10 },
    );
  });

  it('need a limit of their size', () => {
    const limiter: LimiterRule = { kind: 'fixed-window', calls: 4, windowMs: WINDOW_MS };
    expect(() => create({ limiter: { kind: 'weighted', limiter, costs: COSTS, seed: 1 } })).toThrow(RangeError);
  });
});

describe('nodes behind a balancer', () => {
  const limiter: LimiterRule = { kind: 'fixed-window', calls: 2, windowMs: WINDOW_MS };

  it('count alone, and a refused attempt moves on to another node', () => {
    const turns: LimiterRule = { kind: 'nodes', limiter, nodes: 3, choice: 'turns', seed: 1 };
    const instants = Array.from({ length: 7 }, (_, index) => index);
    expect(acceptedBy(turns, instants)).toEqual([0, 1, 2, 3, 4, 5]);
    const { model } = create({ limiter: { ...turns, choice: 'random' } });
    const accepted = Array.from({ length: 100 }, () => acceptsAt(model, 1)).filter(Boolean);
    expect(accepted).toHaveLength(6);
    expect(model.rateAt(0) * 1000).toBeCloseTo(6);
  });

  it('possible is what all of them admit, from their present state', () => {
    fc.assert(
      fc.property(arrivals, fc.nat(), (instants, seed) => {
        const { model } = create({ limiter: { kind: 'nodes', limiter, nodes: 3, choice: 'random', seed } });
        for (const at of instants) acceptsAt(model, at);
        const windowAt = Math.ceil((instants.at(-1) ?? 0) / WINDOW_MS + 1) * WINDOW_MS;
        const start = { from: windowAt, inService: [] };
        const many = Array.from({ length: 50 }, () => windowAt);
        const count = countPossible(
          model,
          many,
          windowAt + 2 * WINDOW_MS,
          () => 0,
          () => 0,
          start,
        );
        expect(count).toBe(12);
      }),
    );
  });
});

it('nginx without nodelay holds a call back until its turn', () => {
  const limiter = create({ limiter: { kind: 'gcra', perSecond: 10, burst: 4, holdsBack: true } });
  const responses = [0, 0, 50, 50, 50].map((at) => limiter.evaluate(at, 0));
  expect(responses.map(({ accepted }) => accepted)).toEqual([true, true, true, true, false]);
  expect(responses.map(({ heldMs = 0 }) => heldMs)).toEqual([0, 100, 150, 250, 0]);
});

describe('compared with published limiters', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('rate-limiter-flexible in memory decides as our window from the first call', async () => {
    await fc.assert(
      fc.asyncProperty(arrivals, async (instants) => {
        vi.useFakeTimers({ now: 0 });
        const theirs = new RateLimiterMemory({ points: CALLS, duration: WINDOW_MS / 1000 });
        const ours = create({ limiter: { kind: 'first-call-window', calls: CALLS, windowMs: WINDOW_MS } });
        for (const at of instants) {
          vi.advanceTimersByTime(at - Date.now());
          const theirDecision = await theirs.consume('caller').then(
            () => true,
            () => false,
          );
          expect({ at, accepted: ours.evaluate(at, 0).accepted }).toEqual({ at, accepted: theirDecision });
        }
        vi.useRealTimers();
      }),
      { numRuns: 50 },
    );
  });

  it('nginx limit_req, as documented, decides as our GCRA with whole milliseconds', () => {
    fc.assert(
      fc.property(
        arrivals,
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 0, max: 5 }),
        (instants, rate, burst) => {
          const ours = create({ limiter: { kind: 'gcra', perSecond: rate, burst: burst + 1, stepMs: 1 } });
          // Requests that wait in the bucket, in thousandths: one leaves each 1/rate seconds, and at most `burst` may wait.
          let waiting = 0;
          let lastAt: number | undefined;
          for (const at of instants) {
            const left = lastAt === undefined ? 0 : Math.max(0, waiting - rate * (at - lastAt) + 1000);
            const accepted = left <= burst * 1000;
            if (accepted) {
              waiting = left;
              lastAt = at;
            }
            expect({ at, accepted: ours.evaluate(at, 0).accepted }).toEqual({ at, accepted });
          }
        },
      ),
    );
  });

  it('our sliding log never refuses p-throttle in strict mode with the same limit', async () => {
    await fc.assert(
      fc.asyncProperty(arrivals, async (instants) => {
        vi.useFakeTimers({ now: 0 });
        const limiter = create({ limiter: { kind: 'sliding-log', calls: CALLS, windowMs: WINDOW_MS } });
        const decisions: boolean[] = [];
        const throttled = pThrottle({ limit: CALLS, interval: WINDOW_MS, strict: true })(async () => {
          decisions.push(limiter.evaluate(Date.now(), 0).accepted);
        });
        const calls = instants.map(async (at) => {
          await new Promise((resolve) => setTimeout(resolve, at));
          await throttled();
        });
        await vi.runAllTimersAsync();
        await Promise.all(calls);
        vi.useRealTimers();
        expect(decisions).toEqual(instants.map(() => true));
      }),
      { numRuns: 25 },
    );
  });
});

describe('response headers', () => {
  const rule: LimiterRule = { kind: 'fixed-window', calls: 10, windowMs: 60_000, phaseMs: 3700 };

  function refusalOf(style: HintStyle, at = 20_500): Readonly<Record<string, string>> {
    const limiter = create({ limiter: rule, hint: style });
    for (let call = 0; call < 10; call++) expect(limiter.evaluate(at, 0).accepted).toBe(true);
    const { accepted, headers } = limiter.evaluate(at, 0);
    expect(accepted).toBe(false);
    return headers;
  }

  // The window ends at 56.3 s on our clock, when the server's clock shows a full minute.
  const minuteAt = DAY_STARTS_AT + 60_000;

  it.each([
    ['none', {}],
    ['retry-after-seconds', { 'retry-after': '36' }],
    ['retry-after-date', { 'retry-after': new Date(minuteAt).toUTCString() }],
    ['ratelimit', { ratelimit: '"default";r=0;t=36', 'ratelimit-policy': '"default";q=10;w=60' }],
    ['ratelimit-combined', { ratelimit: 'limit=10, remaining=0, reset=36' }],
    ['ratelimit-separate', { 'ratelimit-limit': '10', 'ratelimit-remaining': '0', 'ratelimit-reset': '36' }],
    ['x-ratelimit-delta', { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '36' }],
    ['x-ratelimit-epoch-s', { 'x-ratelimit-reset': `${minuteAt / 1000}` }],
    ['x-ratelimit-epoch-ms', { 'x-ratelimit-reset': `${minuteAt}` }],
  ] as const)('a refusal in the style %s', (style, expected) => {
    const headers = refusalOf(style);
    expect(headers).toMatchObject(expected);
    if (style === 'none') expect(headers).toEqual({});
  });

  it('a style with instants sends the server’s date', () => {
    const serverDate = new Date(DAY_STARTS_AT + 20_500 + 3700).toUTCString();
    expect(refusalOf('retry-after-date')).toMatchObject({ date: serverDate });
  });

  it.each(RULES)('$kind: after an accepted response, exactly the stated remaining calls are accepted', (model) => {
    fc.assert(
      fc.property(arrivals, (instants) => {
        const limiter = create({ limiter: model, hint: 'ratelimit' });
        let headers: Readonly<Record<string, string>> = {};
        let at = 0;
        for (at of instants) ({ headers } = limiter.evaluate(at, 0));
        const [entry] = parseList(headers.ratelimit ?? '');
        const remaining: unknown = entry?.[1].get('r');
        if (typeof remaining !== 'number') throw new Error('the field has no remaining count');
        for (let call = 0; call < remaining; call++) expect(limiter.evaluate(at, 0).accepted).toBe(true);
        expect(limiter.evaluate(at, 0).accepted).toBe(false);
      }),
    );
  });

  it.each(RULES)('$kind: a call after Retry-After is accepted', (model) => {
    fc.assert(
      fc.property(arrivals, (instants) => {
        const limiter = create({ limiter: model, hint: 'retry-after-seconds' });
        for (const at of instants) {
          const { accepted, headers } = limiter.evaluate(at, 0);
          if (accepted) expect(headers).toEqual({});
          else {
            expect(limiter.model.nextAt(at, 0)).toBeLessThanOrEqual(at + Number(headers['retry-after']) * 1000);
          }
        }
      }),
    );
  });
});
