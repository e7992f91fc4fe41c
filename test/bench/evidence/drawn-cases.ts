/** Limits with any window, and other causes of bare 503s, drawn at random: a case is the same for a seed. */
import type { LimiterRule } from '../governor/limiters.ts';
import { createRandom } from '../governor/seeded.ts';
import { bursts, limited, onOff, outages, overloaded, partialOutages, poisson } from './cases.ts';
import type { Case, Load } from './world.ts';

/** Numbers between two others. */
class Draw {
  readonly #random: () => number;

  constructor(seed: number, purpose: string) {
    this.#random = createRandom(seed, purpose);
  }

  /** Each ratio is as likely as any other. */
  between(low: number, high: number): number {
    return low * (high / low) ** this.#random();
  }

  oneOf<T>(values: readonly T[]): T {
    const chosen = values[Math.floor(this.#random() * values.length)];
    if (chosen === undefined) throw new Error('there is nothing to choose from');
    return chosen;
  }
}

/** A window of 0.6 s to two minutes with 10 to 150 calls, for 150 windows. */
export function drawLimit(seed: number): Case {
  const draw = new Draw(seed, 'limit');
  const windowMs = Math.round(draw.between(600, 120_000));
  const calls = Math.round(draw.between(10, 150));
  const perSecond = (1000 * calls) / windowMs;
  const limiter = draw.oneOf<LimiterRule>([
    { kind: 'fixed-window', calls, windowMs, phaseMs: windowMs / 3 },
    { kind: 'sliding-log', calls, windowMs },
    { kind: 'first-call-window', calls, windowMs },
    { kind: 'token-bucket', perSecond, burst: calls },
  ]);
  const factor = draw.between(1.3, 2.5);
  const [load, offered] = draw.oneOf<readonly [string, Load]>([
    [`${factor.toFixed(1)} × steady`, poisson(() => factor * perSecond)],
    ['on-off', onOff(3 * perSecond, windowMs * draw.between(1, 2), 0, windowMs * draw.between(1, 3))],
    ['bursts', bursts(3 * calls, 3 * windowMs)],
  ]);
  return {
    name: `${limiter.kind} of ${calls} per ${windowMs / 1000} s, ${load}`,
    ...{ load: offered, upstream: limited(limiter), durationMs: 150 * windowMs, retries: draw.oneOf([0, 1]) },
  };
}

/** Overload, slow calls, flaps and faults by chance, for 15 minutes. */
export function drawOtherCause(seed: number): Case {
  const draw = new Draw(seed, 'other cause');
  const rate = draw.between(4, 40);
  const capacity = rate * draw.between(0.5, 1.2);
  const queueMs = draw.between(1500, 8000);
  const [cause, upstream] = draw.oneOf<readonly [string, Case['upstream']]>([
    ['overload', overloaded(capacity, queueMs, Infinity)],
    ['overload with timeouts', overloaded(capacity, queueMs, queueMs * 0.75)],
    ['slow calls', overloaded(capacity, queueMs, Infinity, draw.between(50, 200))],
    ['flaps', outages(draw.between(200, 2000), draw.between(2000, 20_000), draw.between(2000, 60_000))],
    ['faults in runs', partialOutages(draw.between(0.1, 0.9), draw.between(1000, 60_000), draw.between(5000, 300_000))],
  ]);
  const [load, offered] = draw.oneOf<readonly [string, Load]>([
    ['steady', poisson(() => rate)],
    ['on-off', onOff(3 * rate, draw.between(1000, 30_000), 0.1, draw.between(1000, 30_000))],
    ['bursts', bursts(draw.between(20, 200), draw.between(2000, 30_000))],
    ['closed loop', { kind: 'closed', workers: Math.ceil(draw.between(4, 30)), thinkMs: draw.between(50, 1000) }],
  ]);
  return {
    name: `${cause}, ${load}, ${rate.toFixed(0)}/s, seed ${seed}`,
    ...{ load: offered, upstream, durationMs: 900_000, retries: draw.oneOf([0, 1, 2, 3]) },
  };
}
