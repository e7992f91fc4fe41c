/**
 * How much of a limit that it does not know a saturated fleet reaches after its start, in virtual time over the script in a real Redis: worst
 * and median share of several starts from second 30 and from second 60 on, and the share of refused calls. Needs redis-server.
 * Run: npm run bench:fleet-share -- [--starts 30] [--first 1] [--replicas 2,4,16] [--limits window,bucket] [--clients 16]
 */
import { parseArgs } from 'node:util';
import { FleetSimulation, SimulatedRedis, SimulationClock } from '../fleet/shared-quota/fleet-simulation.ts';
import { freePort } from '../support/loopback.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { bucketLimiter, windowLimiter } from '../throttle/simulation.ts';

const { values } = parseArgs({
  options: {
    starts: { type: 'string', default: '30' },
    first: { type: 'string', default: '1' },
    replicas: { type: 'string', default: '2,4,16' },
    limits: { type: 'string', default: 'window,bucket' },
    clients: { type: 'string', default: '16' },
  },
});

const LIMITS = {
  window: { name: '60 per 4 s', rate: 15, createLimiter: () => windowLimiter(60, 4000, false) },
  bucket: { name: '20/s', rate: 20, createLimiter: () => bucketLimiter(20, 20) },
};
const MEASURED_MS = 20_000;
const END_MS = 80_000;

interface Shares {
  readonly after30: number;
  readonly after60: number;
  readonly refused: number;
}

async function measureShares(url: string, limit: keyof typeof LIMITS, replicas: number, seed: number): Promise<Shares> {
  const { rate, createLimiter } = LIMITS[limit];
  const clock = new SimulationClock();
  const redis = await SimulatedRedis.open(url, clock);
  const limiter = createLimiter();
  // The window opens at another instant in each start.
  const offsetMs = (seed * 377) % 4000;
  const fleet = new FleetSimulation({
    ...{ redis, clock, replicas, seed, key: `${limit}-${String(replicas)}-${String(seed)}` },
    limiter: (at) => limiter(at + offsetMs),
    load: { clients: replicas * Number(values.clients) },
    oneWayMs: [2, 3],
    callsAfterMs: 0,
    callsWithinMs: 100,
  });
  await clock.runUntil(END_MS);
  fleet.stop();
  redis.close();
  const shareFrom = (at: number): number => fleet.count(at, at + MEASURED_MS).accepted / ((MEASURED_MS / 1000) * rate);
  return { after30: shareFrom(30_000), after60: shareFrom(60_000), refused: fleet.count(30_000, END_MS).refusedShare };
}

function describe(numbers: readonly number[]): string {
  const sorted = [...numbers].sort((one, other) => one - other);
  return `${(sorted[0] ?? NaN).toFixed(2)} / ${(sorted[sorted.length >> 1] ?? NaN).toFixed(2)}`;
}

const port = await freePort();
const server = await startRedisServer(port);
try {
  console.log('limit, replicas: share after 30 s, worst / median; after 60 s; refused, median / worst');
  for (const limit of values.limits.split(',') as (keyof typeof LIMITS)[])
    for (const replicas of values.replicas.split(',').map(Number)) {
      const shares: Shares[] = [];
      for (let index = 0; index < Number(values.starts); index++)
        shares.push(
          await measureShares(`redis://127.0.0.1:${String(port)}`, limit, replicas, Number(values.first) + index),
        );
      const refused = shares.map((share) => share.refused).sort((one, other) => one - other);
      const percent = (share = NaN): string => `${(100 * share).toFixed(1)} %`;
      console.log(
        `${LIMITS[limit].name}, ${String(replicas)}: ${describe(shares.map(({ after30 }) => after30))}; ` +
          `${describe(shares.map(({ after60 }) => after60))}; ${percent(refused[refused.length >> 1])} / ${percent(refused.at(-1))}`,
      );
    }
} finally {
  await server.stop();
}
