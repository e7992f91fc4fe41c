/** Declared limits of a fleet in virtual time, kept by the script in a real Redis, before an upstream that counts exactly. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import { periodMs } from '../../../src/throttle/declared/limit-window.ts';
import { startRedis } from '../../support/redis.ts';
import type { Limiter } from '../../throttle/simulation.ts';
import { FleetSimulation, SimulatedRedis, SimulationClock } from './fleet-simulation.ts';

function limit(calls: number, per: string, terms: Partial<DeclaredLimit> = {}): DeclaredLimit {
  const name = `${String(calls)}-per-${per}`;
  const common = { window: 'sliding', timeZone: 'UTC', countsRefused: true, spread: 'none', reserve: 0 } as const;
  return { ...common, name, calls, per, ...terms };
}

/** Refuses what is beyond any of the limits in any time of their length. Refused calls do not count. */
function exactLimiter(limits: readonly DeclaredLimit[]): Limiter {
  const counters = limits.map(({ calls, per }) => ({ calls, lengthMs: periodMs(per), accepted: [] as number[] }));
  return (at) => {
    for (const { accepted, lengthMs } of counters)
      while (accepted.length > 0 && (accepted[0] ?? 0) <= at - lengthMs) accepted.shift();
    if (counters.some(({ accepted, calls }) => accepted.length >= calls)) return { accepted: false };
    for (const { accepted } of counters) accepted.push(at);
    return { accepted: true };
  };
}

async function createFleet(limits: readonly DeclaredLimit[], perSecond: number, replicas = 4) {
  const server = await startRedis();
  const clock = new SimulationClock();
  const redis = await SimulatedRedis.open(server.url, clock);
  const load = { perSecond };
  const fleet = new FleetSimulation({
    redis,
    clock,
    replicas,
    limiter: exactLimiter(limits),
    load,
    limits,
    callsAfterMs: 500,
  });
  onTestFinished(() => {
    fleet.stop();
    redis.close();
  });
  const used = () => fleet.throttles.map((throttle) => throttle.state().limits?.map((one) => one.used));
  return { clock, redis, fleet, used };
}

describe('four replicas at three times the load', () => {
  test('use both limits, and exceed none', async () => {
    const { clock, fleet } = await createFleet([limit(100, '10s'), limit(450, '1m')], 22.5);
    await clock.runUntil(600_500);
    const { accepted, refused } = fleet.count(0, 600_500);
    expect(refused).toBe(0);
    expect(accepted / 4500).toBeGreaterThan(0.97);
  });
});
