/** `throttle.mode: observe` under `auto`: what it says would have waited, beside what enforcing did with the same calls. */
import { describe, expect, it } from 'vitest';
import type { LimiterRule } from '../../bench/governor/limiters.ts';
import { seeded } from '../simulation.ts';
import { play } from './auto-world.ts';

const LIMITERS = 10;
const TOLERANCE = 0.2;

interface Drawn {
  readonly limiter: LimiterRule;
  readonly load: number;
}

function draw(seed: number): Drawn {
  const random = seeded(seed);
  const perSecond = 2 + random() * 30;
  const windowMs = [1000, 5000, 10_000][Math.floor(random() * 3)] ?? 1000;
  const calls = Math.max(2, Math.round((perSecond * windowMs) / 1000));
  const limiters: readonly LimiterRule[] = [
    { kind: 'fixed-window', calls, windowMs },
    { kind: 'sliding-log', calls, windowMs },
    { kind: 'token-bucket', perSecond, burst: Math.ceil(perSecond) },
  ];
  const limiter = limiters[Math.floor(random() * limiters.length)] ?? { kind: 'concurrency', calls };
  return { limiter, load: 0.2 + random() * 1.3 };
}

/** Beside enforcing with the same calls, without and with a limit that was learned before. */
async function observe(seed: number) {
  const drawn = { ...draw(seed), seed, durationMs: 60_000 };
  const enforced = await play(drawn);
  const cold = await play({ ...drawn, throttle: { mode: 'observe' } });
  const restored = (await play({ ...drawn, load: 1.5 })).throttles[0]?.snapshot();
  const warm = await play({ ...drawn, throttle: { mode: 'observe' }, restored });
  const [figures, learned] = [cold, warm].map(({ throttles }) => throttles[0]?.state().observed);
  return { enforced, figures, refusals: cold.refusals, learned };
}

describe('ten drawn limiters under auto', () => {
  it('what would have waited is within 20 % of what waits, or unknown', { timeout: 120_000 }, async () => {
    let known = 0;
    for (let seed = 1; seed <= LIMITERS; seed++) {
      const { enforced, figures, refusals, learned } = await observe(seed);
      expect(figures?.certainty).toBe(refusals === 0 ? 'exact' : 'unknown');
      expect(learned?.certainty).toBe('unknown');
      if (figures === undefined || refusals > 0) continue;
      known++;
      expect(Math.abs(figures.wouldWaitMs - enforced.waitedMs)).toBeLessThanOrEqual(enforced.waitedMs * TOLERANCE);
      expect(figures.wouldRefuse).toBe(enforced.rejected.length);
    }
    expect(known).toBeGreaterThan(1);
    expect(known).toBeLessThan(LIMITERS);
  });
});
