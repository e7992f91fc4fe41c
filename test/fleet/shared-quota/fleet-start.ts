/** How a fleet starts against a hidden limit, in virtual time: when it reaches half of the rate, and whether it keeps it. */
import { FleetSimulation, SimulatedRedis, SimulationClock } from './fleet-simulation.ts';
import { bucketLimiter } from '../../throttle/simulation.ts';

/** Calls per second that the limiter accepts. */
export const QUOTA = 40;
const OFFERED = QUOTA * 1.5;
/** The rate is reached when so long a time has had half of what the limit allows. */
const REACHED_MS = 2_000;
const KEPT_MS = 5_000;
const STEP_MS = 100;

export type Loop = 'closed' | 'open';

export interface StartOptions {
  readonly loop: Loop;
  readonly burst: number;
  /** 0: one process without a fleet. */
  readonly replicas: number;
  readonly seed: number;
  readonly seconds: number;
}

export interface FleetStart {
  /** Milliseconds; Infinity when it is never reached. */
  readonly halfRateMs: number;
  /** Least share of the limit accepted in any five seconds after that; 0 when half is never reached. */
  readonly lowestShare: number;
  /** Share of the limit accepted in the whole time. */
  readonly acceptedShare: number;
  readonly refused: number;
  /** Of all replicas. */
  readonly commandsPerSecond: number;
}

/** @param url a Redis; each run has a key of its own */
export async function measureStart(url: string, options: StartOptions): Promise<FleetStart> {
  const { loop, burst, replicas, seed, seconds } = options;
  const clock = new SimulationClock();
  const redis = await SimulatedRedis.open(url, clock);
  const world = new FleetSimulation({
    redis,
    clock,
    replicas: Math.max(1, replicas),
    isAlone: replicas === 0,
    limiter: bucketLimiter(QUOTA, burst),
    load: loop === 'open' ? { perSecond: OFFERED } : { clients: 24 + (seed % 7) },
    seed,
    key: `start-${loop}-${String(burst)}-${String(replicas)}-${String(seed)}`,
  });
  await clock.runUntil(seconds * 1000);
  world.stop();
  redis.close();
  const accepted = world.arrivals.filter((one) => one.accepted).map(({ at }) => at);
  const { refused } = world.count(0, Infinity);
  const halfRateMs = findHalfRate(accepted, seconds * 1000);
  return {
    halfRateMs,
    lowestShare: findLowestShare(accepted, halfRateMs, seconds * 1000),
    acceptedShare: accepted.length / (seconds * QUOTA),
    refused,
    commandsPerSecond: redis.commands / seconds,
  };
}

/** @param accepted rising instants since the start; Infinity when half of the limit is not reached before `end` */
export function findHalfRate(accepted: readonly number[], end: number): number {
  const needed = ((QUOTA / 2) * REACHED_MS) / 1000;
  for (let at = REACHED_MS; at <= end; at += STEP_MS)
    if (countWithin(accepted, at - REACHED_MS, at) >= needed) return at;
  return Infinity;
}

function findLowestShare(accepted: readonly number[], from: number, end: number): number {
  let lowest = from === Infinity ? 0 : 1;
  for (let at = from; at + KEPT_MS <= end; at += STEP_MS)
    lowest = Math.min(lowest, (countWithin(accepted, at, at + KEPT_MS) * 1000) / (KEPT_MS * QUOTA));
  return lowest;
}

function countWithin(instants: readonly number[], from: number, to: number): number {
  return instants.filter((at) => at >= from && at < to).length;
}
