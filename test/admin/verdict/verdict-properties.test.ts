/** What holds for the verdict, with generated failures: it blames only with enough failures, the larger cause, and what goes on. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CAUSES, type CauseName } from '../../../src/admin/verdict/causes.ts';
import { FAULT_CAUSES } from '../../../src/telemetry/events.ts';
import type { ThrottleState } from '../../../src/throttle/throttle.ts';
import { unpaced } from '../states.ts';
import { PlayedVerdict } from './played-verdict.ts';

type Failure = (scene: PlayedVerdict, times: number) => unknown;

const FAULTS = FAULT_CAUSES.filter((cause) => cause !== 'response_cut' && cause !== 'intercepted');
const refuse: Failure = (s, times) => s.respond(429, times);
const leaveQueue: Failure = (s, times) => s.reject('client_left', times);
const requestFailures: readonly Failure[] = [
  refuse,
  ...[400, 401, 404, 422, 500, 502, 503, 504].map(
    (code) => (s: PlayedVerdict, times: number) => s.respond(code, times),
  ),
  ...FAULTS.map((cause) => (s: PlayedVerdict, times: number) => s.fail(cause, times)),
  leaveQueue,
  ...['HOST_NOT_ALLOWED', 'BAD_REQUEST'].map(
    (code) => (s: PlayedVerdict, times: number) => s.reply(code, times, 'default', 403),
  ),
];
/** What holds them decides whose fault it is. */
const failures: readonly Failure[] = [
  ...requestFailures,
  ...['full', 'timeout', 'expected_wait'].map((reason) => (s: PlayedVerdict, times: number) => s.reject(reason, times)),
];
const with429 = { wallAt: 0, status: 429, pauseMs: 20_000, stated: true, fields: { 'retry-after': 20 } };
const requestFailure = fc.constantFrom(...requestFailures);
const failure = fc.constantFrom(...failures);
const seconds = fc.integer({ min: 1, max: 400 });

describe('the verdict', () => {
  it('blames no side while nothing fails and nothing waits, at any rate and for any time', () => {
    fc.assert(
      fc.property(
        seconds,
        fc.integer({ min: 0, max: 50 }),
        fc.integer({ min: 1, max: 2000 }),
        (time, rate, upstreamMs) => {
          const { verdict } = new PlayedVerdict().play(time, (s) =>
            rate > 0 ? s.respond(200, rate, { upstreamMs }) : s,
          );
          const { where, level, advice, other } = verdict;
          expect({ where, level, advice, other }).toEqual({ where: 'none', level: 'good' });
        },
      ),
      { numRuns: 60 },
    );
  });

  it('counts no more failed and delayed requests than there were', () => {
    fc.assert(
      fc.property(
        fc.array(failure, { maxLength: 4 }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 500, max: 20_000 }),
        fc.nat(20_000),
        fc.nat(50),
        (kinds, rate, upstreamMs, queuedMs, queued) => {
          const { verdict } = new PlayedVerdict()
            .play(20, (s) => {
              s.respond(200, rate, { upstreamMs, queuedMs });
              for (const fail of kinds) fail(s, 1);
            })
            .with({ throttles: [{ ...unpaced, inFlight: 4, queued }] });
          const number = (word: string): number => {
            const [, text = '0'] = new RegExp(`([\\d,]+)(?: requests?)? ${word}`).exec(verdict.detail) ?? [];
            return Number(text.replaceAll(',', ''));
          };
          const [, total = '0'] = /of ([\d,]+) in the last/.exec(verdict.detail) ?? [];
          if (total !== '0')
            expect(number('failed') + number('delayed')).toBeLessThanOrEqual(Number(total.replaceAll(',', '')));
        },
      ),
      { numRuns: 100 },
    );
  });

  it('blames no side for fewer than three failures, of any kind', () => {
    fc.assert(
      fc.property(fc.array(failure, { maxLength: 2 }), fc.nat(60), (kinds, successes) => {
        const scene = new PlayedVerdict().play(5);
        if (successes > 0) scene.respond(200, successes);
        for (const fail of kinds) fail(scene, 1);
        expect(scene.play(5).verdict.where).toBe('none');
      }),
      { numRuns: 200 },
    );
  });

  it('blames for many failures, and for the kind of which there are more', () => {
    fc.assert(
      fc.property(requestFailure, requestFailure, fc.integer({ min: 3, max: 40 }), (one, other, times) => {
        // Refusals hold the queue that the clients leave.
        fc.pre(one !== leaveQueue || other !== refuse);
        const alone = new PlayedVerdict().play(5);
        one(alone, times * 3);
        const { verdict } = alone.play(2);
        expect(verdict.where).not.toBe('none');
        const both = new PlayedVerdict().play(5);
        one(both, times * 3);
        other(both, times);
        const { where, code } = both.play(2).verdict;
        // Two statuses of one place share a cause; what is no longer every call has another.
        if (verdict.code !== '404') expect([where, code]).toEqual([verdict.where, verdict.code]);
      }),
      { numRuns: 200 },
    );
  });

  it('names the route that fails, whichever it is, beside routes that work', () => {
    fc.assert(
      fc.property(fc.constantFrom(...FAULTS), fc.integer({ min: 2, max: 8 }), fc.nat(7), (cause, count, at) => {
        const routes = Array.from({ length: count }, (_, index) => `r${String(index)}`);
        const broken = routes[at % count] ?? '';
        const scene = new PlayedVerdict().with({ throttles: routes.map((route) => ({ ...unpaced, route })) });
        scene.play(10, (s) => {
          for (const route of routes)
            if (route === broken) s.fail(cause, 4, route);
            else s.respond(200, 4, { route });
        });
        expect(scene.verdict).toMatchObject({ where: CAUSES[cause].where, route: broken, code: cause });
        expect(scene.verdict.headline).toContain(broken);
      }),
      { numRuns: 60 },
    );
  });

  it('is the same beside routes without requests', () => {
    fc.assert(
      fc.property(
        fc.array(failure, { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 40, max: 5000 }),
        fc.nat(3000),
        fc.nat(40),
        (kinds, times, upstreamMs, queuedMs, queued) => {
          const scene = new PlayedVerdict().play(12, (s) => {
            for (const fail of kinds) fail(s, times);
            s.respond(200, 2, { upstreamMs, queuedMs });
          });
          const busy = { ...unpaced, inFlight: 4, queued };
          const alone = scene.with({ throttles: [busy] }).verdict;
          const idle = ['a', 'z'].map((route) => ({ ...unpaced, route, inFlight: 0 }));
          const beside = scene.with({ throttles: [...idle, busy] }).verdict;
          const { headline, other } = beside;
          const plain = [headline, other].map((text) => text?.replace(' (route default)', ''));
          expect({ ...beside, headline: plain[0], other: plain[1] }).toEqual(alone);
        },
      ),
      { numRuns: 100 },
    );
  });

  it('ends when the cause has gone, and never before', () => {
    fc.assert(
      fc.property(failure, fc.integer({ min: 3, max: 60 }), fc.integer({ min: 2, max: 10 }), (fail, broken, rate) => {
        const scene = new PlayedVerdict().play(broken, (s) => void fail(s, rate));
        expect(scene.verdict.where).not.toBe('none');
        scene.play(20, (s) => void s.respond(200, rate));
        expect(scene.verdict.where).toBe('none');
        expect(scene.verdict.headline).toMatch(/^(?:Recovered: |Healthy$)/);
        scene.play(330, (s) => void s.respond(200, rate));
        expect(scene.verdict.headline).toBe('Healthy');
      }),
      { numRuns: 60 },
    );
  });

  it('blames the limit where the partner refuses many calls, whether or not all places are taken at the moment', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1000, max: 5000 }),
        fc.integer({ min: 1, max: 100 }),
        fc.nat(1000),
        fc.constantFrom(0, 400, 12_000),
        (refused, served, upstreamMs, inFlightLimit, free, pausedMs) => {
          fc.pre(refused * 2 >= served);
          const inFlight = Math.max(1, inFlightLimit - (free % inFlightLimit));
          const state = { ...unpaced, rate: 3, pausedMs, inFlight, inFlightLimit, queued: 70 };
          const scene = new PlayedVerdict().play(8, (s) => {
            s.attempt('rate_limited', refused).respond(200, served, { upstreamMs, queuedMs: 2000 });
          });
          expect(scene.with({ throttles: [state] }).verdict.where).toBe('limit');
        },
      ),
      { numRuns: 200 },
    );
  });

  it('blames the limit where the partner limits calls in flight, and the partner where its responses take long', () => {
    fc.assert(
      fc.property(fc.integer({ min: 300, max: 9000 }), fc.integer({ min: 1, max: 20 }), (upstreamMs, places) => {
        // The few calls that end in five seconds tell a latency only roughly.
        fc.pre(upstreamMs < 1600 || upstreamMs > 3000);
        const learned = { rate: Infinity, limit: places, kind: 'concurrency', confidence: 'high', since: 0 } as const;
        const state = { ...unpaced, learned, inFlight: places, inFlightLimit: places, queued: 500 };
        const scene = new PlayedVerdict().play(15, (s, second) => {
          const perSecond = (places * 1000) / upstreamMs;
          const ended = Math.floor((second + 1) * perSecond) - Math.floor(second * perSecond);
          s.respond(200, ended, { upstreamMs, queuedMs: 20_000 });
        });
        const { where } = scene.with({ throttles: [state] }).verdict;
        expect(where).toBe(upstreamMs < 1600 ? 'limit' : 'partner');
      }),
      { numRuns: 100 },
    );
  });

  it('blames the partner that does not respond, for as long as it lasts, wherever its clients are when they leave', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 10_000 }),
        fc.integer({ min: 4, max: 50 }),
        fc.integer({ min: 4, max: 100 }),
        fc.constantFrom(8, 14, 40, 400),
        fc.nat(3),
        (clientTimeoutMs, perSecond, places, time, leftQueue) => {
          fc.pre(clientTimeoutMs < 600 || clientTimeoutMs > 1500);
          // A place is free when its client leaves, and the next in the queue has waited nearly as long.
          const upstreamMs = Math.min(clientTimeoutMs, (places * 1000) / perSecond);
          const inFlight = Math.round((perSecond * upstreamMs) / 1000);
          const queued = Math.round((perSecond * (clientTimeoutMs - upstreamMs)) / 1000);
          const scene = new PlayedVerdict()
            .play(time, (s, second) => {
              if (second * 1000 < clientTimeoutMs) return;
              s.leave(perSecond, { upstreamMs, queuedMs: clientTimeoutMs - upstreamMs });
              if (queued > 0) s.reject('client_left', leftQueue);
            })
            .hold(inFlight, upstreamMs)
            .with({ throttles: [{ ...unpaced, inFlight, inFlightLimit: places, queued }] });
          const waitsLong = clientTimeoutMs > 1500 && time * 1000 > clientTimeoutMs + 5000;
          if (waitsLong) expect(scene.verdict).toMatchObject({ where: 'partner', code: 'no_response_in_time' });
          else if (clientTimeoutMs < 600) expect(scene.verdict.where).toBe('application');
        },
      ),
      { numRuns: 200 },
    );
  });

  it('blames what holds the queue, unless the clients leave within a second, and names that they leave', () => {
    const limit = { rate: 3, kind: 'window', confidence: 'low', since: 0 } as const;
    const holds: readonly (readonly [where: string, state: Partial<ThrottleState>])[] = [
      ['setting', { mode: 'static', rate: 3 }],
      ['limit', { rate: 3, learned: limit }],
      ['limit', { rate: 3, learned: limit, pausedMs: 12_000, recentSignals: [with429] }],
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...holds),
        fc.integer({ min: 100, max: 10_000 }),
        fc.integer({ min: 10, max: 40 }),
        fc.constantFrom(20, 60, 300),
        fc.integer({ min: 20, max: 900 }),
        ([where, state], clientTimeoutMs, perSecond, time, upstreamMs) => {
          fc.pre(clientTimeoutMs < 700 || clientTimeoutMs > 1500);
          const queued = Math.round((perSecond * clientTimeoutMs) / 1000);
          const isLate = upstreamMs > clientTimeoutMs / 10;
          const scene = new PlayedVerdict().play(time, (s, second) => {
            if (second * 1000 < clientTimeoutMs) return;
            s.reject('client_left', perSecond - 3);
            if (state.pausedMs !== undefined) return;
            const queuedMs = clientTimeoutMs * 0.9;
            if (isLate) s.leave(3, { upstreamMs: clientTimeoutMs / 10, queuedMs });
            else s.respond(200, 3, { upstreamMs, queuedMs });
          });
          const { verdict } = scene.with({ throttles: [{ ...unpaced, ...state, inFlightLimit: 100, queued }] });
          const waitsLong = clientTimeoutMs > 1500 || state.pausedMs !== undefined;
          expect(verdict.where).toBe(waitsLong ? where : 'application');
          const texts = [verdict.headline, verdict.other ?? ''];
          expect(texts.some((text) => text.startsWith('The clients leave'))).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('has one line, and no text of the table is left open', () => {
    for (const name of Object.keys(CAUSES) as CauseName[]) {
      const { headline, advice } = CAUSES[name];
      expect(headline + advice).not.toContain('\n');
      expect(headline).toMatch(/^[A-Z].*[^.]$/);
      expect(advice).toMatch(/[.}]$|\]`\.?$/);
    }
  });
});
