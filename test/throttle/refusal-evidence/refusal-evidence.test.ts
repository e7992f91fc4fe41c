/** The evidence finds hidden limits and no limit where there is none, in virtual time. `npm run bench:evidence` has all cases and 20 seeds. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LIMITED, NOT_LIMITED } from '../../bench/evidence/cases.ts';
import { runCase, type Case } from '../../bench/evidence/world.ts';
import { AttemptSequence } from '../../../src/throttle/refusal-evidence/attempt-sequence.ts';
import { RefusalEvidence, type AttemptSign } from '../../../src/throttle/refusal-evidence/refusal-evidence.ts';

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
  const evidence = new RefusalEvidence();
  let at = 0;
  for (let window = 0; window < 100; window++)
    for (let call = 0; call < 30 + (window % 7); call++) {
      const isForbidden = call >= 20;
      const attempt = evidence.start((at = window * 60_000 + call), false);
      evidence.end(attempt, at + 5, isForbidden ? 403 : 'accepted', 'GET', isForbidden ? '/reports' : '/quotes/7');
    }
  expect(evidence.findings).toEqual([]);
});

test('takes attempts in the order in which they were sent, in any order of their responses', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(5000), { minLength: 1, maxLength: 300 }), (delays) => {
      const sequence = new AttemptSequence();
      const ends = delays.map((delay, index) => ({ attempt: sequence.start(index, false), at: index + delay }));
      const taken: number[] = [];
      for (const { attempt, at } of ends.toSorted((a, b) => a.at - b.at)) {
        sequence.end(attempt, at, 2, 0);
        for (let next = sequence.take(); next !== undefined; next = sequence.take()) taken.push(next.sentAt);
      }
      expect(taken).toEqual(delays.map((_, index) => index));
    }),
  );
});

test('goes on when attempts never end, and when ends come late, twice or not at all', () => {
  const signs: readonly AttemptSign[] = ['accepted', 'fault', 'other', 403, 503, 529];
  const step = fc.record({
    back: fc.nat(3000),
    sign: fc.constantFrom(...signs),
    times: fc.integer({ min: 1, max: 40 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      const evidence = new RefusalEvidence();
      let [now, last] = [0, 0];
      for (const { back, sign, times } of steps) {
        for (let started = 0; started < times; started++) last = evidence.start((now += 7), started % 3 === 0);
        const attempt = Math.max(0, last - back);
        evidence.end(attempt, now, sign, 'GET', `/x/${back}`);
        evidence.end(attempt, now, 'accepted', 'GET', '/x');
      }
      expect(evidence.findings.length).toBeLessThanOrEqual(3);
    }),
  );
});
