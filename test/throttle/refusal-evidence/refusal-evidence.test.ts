/** The evidence finds hidden limits and no limit where there is none, in virtual time. `npm run bench:evidence` has all cases and 20 seeds. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LIMITED, NOT_LIMITED } from '../../bench/evidence/cases.ts';
import { drawLimit, drawOtherCause } from '../../bench/evidence/drawn-cases.ts';
import { createObserver, runCase, type Case } from '../../bench/evidence/world.ts';
import type {
  AttemptSign,
  ObservedAttempt,
  RefusalFinding,
} from '../../../src/throttle/refusal-evidence/status-evidence.ts';
import { seeded } from '../simulation.ts';

const MINUTE_MS = 60_000;

function selectCases(cases: readonly Case[], names: readonly string[], durationMs: number): Case[] {
  return names.map((name) => {
    const found = cases.find((one) => one.name === name);
    if (found === undefined) throw new Error(`there is no case ${name}`);
    return { ...found, durationMs };
  });
}

const FOUND = selectCases(
  LIMITED,
  [
    'fixed 10 per 1 s, 1.5 × steady',
    'fixed 100 per 10 s, 1.5 × steady',
    'fixed 40 per 3.3 s, 1.5 × steady',
    'fixed 40 per 3.3 s, bursts of 3 × the limit',
    'fixed 40 per 3.3 s, on-off 3 ×',
    'fixed 100 per 10 s, bursts of 3 × the limit',
    'sliding 100 per 10 s, 1.5 × steady',
    'bucket 10/s of 20, 1.5 × steady',
    'nginx 10/s burst 20, on-off 3 ×',
    'nginx 10/s burst 0, 1.5 × steady',
    'sliding 20 per 1 s, on-off 3 ×',
  ],
  20 * MINUTE_MS,
);

const NOT_FOUND = selectCases(
  NOT_LIMITED,
  [
    'outages of 1 to 10 s, steady 15/s',
    'outages of 10 s to 5 min, on-off 30/s',
    '10 s of every minute, daily 15/s',
    'one node of three by turns, bursts of 100',
    'one node of three by turns, closed loop, 8 workers',
    'one node of three at random, even 15/s',
    'random 1 %, steady 15/s',
    'random 30 %, closed loop, 8 workers',
    'random 60 % for 10 s of 60, daily 15/s',
    'random 60 % for 10 s of 60, repeated at once, even 15/s',
    'random 5 %, repeated at once, even 15/s',
    'random 5 %, repeated each second, even 15/s',
    'overload beyond 12/s, steady 15/s',
    'overload beyond 12/s, no timeouts, bursts of 100',
    'overload beyond 12/s, calls of 200 ms, steady 15/s',
    '403 on an endpoint, in jobs, steady 15/s',
    '403 on a third of the resources, daily 15/s',
  ],
  20 * MINUTE_MS,
);

describe('proposes a setting', () => {
  test.each(FOUND)('for $name', (one) => {
    for (const seed of [1, 2]) {
      const { finding, refused } = runCase(one, seed);
      expect(finding, `seed ${seed}, ${refused} refused`).toMatchObject({ status: 503 });
    }
  });
});

test('proposes a setting for nearly all limits that are drawn, whatever their windows are', () => {
  const missed = Array.from({ length: 60 }, (_, seed) => drawLimit(seed)).filter(
    (one, seed) => runCase(one, seed).finding?.status !== 503,
  );
  expect(missed.length, missed.map(({ name }) => name).join(', ')).toBeLessThanOrEqual(6);
});

test('proposes none for other causes that are drawn', () => {
  const falseOnes = Array.from({ length: 40 }, (_, seed) => drawOtherCause(seed)).filter(
    (one, seed) => runCase(one, seed).finding !== undefined,
  );
  expect(falseOnes.map(({ name }) => name)).toEqual([]);
});

describe('proposes none', () => {
  test.each(NOT_FOUND)('for $name', (one) => {
    for (const seed of [1, 2]) {
      const { finding, refused } = runCase(one, seed);
      expect(refused).toBeGreaterThan(10);
      expect(finding, `seed ${seed}`).toBeUndefined();
    }
  });
});

test('proposes none for statuses of which every call to an endpoint is refused', () => {
  const observer = createObserver();
  for (let window = 0; window < 100; window++)
    for (let call = 0; call < 30 + (window % 7); call++) {
      const sentAt = window * 60_000 + call;
      const isForbidden = call >= 20;
      const [sign, path] = isForbidden ? ([403, '/reports'] as const) : (['accepted', '/quotes/7'] as const);
      observer.record({ sentAt, endedAt: sentAt + 5, sign, method: 'GET', path, isRetry: false });
    }
  expect(observer.findings).toEqual([]);
});

test('examines attempts in the order in which they were sent, in any order of their responses', () => {
  const play = (latencyOf: () => number): readonly RefusalFinding[] => {
    const random = seeded(1);
    const attempts = Array.from({ length: 40 }, (_, window) =>
      Array.from({ length: 60 + Math.floor(random() * 40) }, (__, call): ObservedAttempt => {
        const sentAt = window * 60_000 + call * 500;
        const sign = call < 50 ? 'accepted' : 503;
        return { sentAt, endedAt: sentAt + latencyOf(), sign, method: 'GET', path: '/quotes/1', isRetry: false };
      }),
    ).flat();
    const observer = createObserver();
    for (const attempt of attempts.toSorted((a, b) => a.endedAt - b.endedAt)) observer.record(attempt);
    return observer.findings.map((finding) => ({ ...finding, refused: 0, accepted: 0, lastAt: 0 }));
  };
  const inOrder = play(() => 1000);
  expect(inOrder).toMatchObject([{ status: 503, acceptedPerWindow: 50 }]);
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const latency = seeded(seed);
      expect(play(() => 1000 + 3000 * latency())).toEqual(inOrder);
    }),
    { numRuns: 20 },
  );
});

test('goes on when responses come late, twice or in any order', () => {
  const signs: readonly AttemptSign[] = ['accepted', 'fault', 'other', 403, 503, 529];
  const step = fc.record({
    latencyMs: fc.nat(100_000),
    sign: fc.constantFrom(...signs),
    times: fc.integer({ min: 1, max: 40 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      const observer = createObserver();
      let endedAt = 0;
      for (const { latencyMs, sign, times } of steps)
        for (let time = 0; time < times; time++) {
          endedAt += 7;
          const sentAt = endedAt - latencyMs;
          observer.record({ sentAt, endedAt, sign, method: 'GET', path: `/x/${latencyMs}`, isRetry: time % 3 === 0 });
        }
      expect(observer.findings.length).toBeLessThanOrEqual(3);
    }),
  );
});
