/**
 * How a fleet starts against a limit that it does not know, in virtual time over the script in a real Redis: the time to half of the
 * rate, and the lowest five seconds afterwards, beside one process alone. Needs redis-server.
 * Run: npm run bench:fleet-start -- [--seeds 20] [--first 1] [--replicas 1,3,4] [--bursts 1,3,10] [--loops closed,open]
 */
import { parseArgs } from 'node:util';
import { freePort } from '../support/loopback.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { measureStart, type FleetStart, type Loop } from '../fleet/shared-quota/fleet-start.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    first: { type: 'string', default: '1' },
    replicas: { type: 'string', default: '1,3,4' },
    bursts: { type: 'string', default: '1,3,10' },
    loops: { type: 'string', default: 'closed,open' },
    seconds: { type: 'string', default: '60' },
  },
});
const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => index + Number(values.first));
const listOf = (text: string): number[] => text.split(',').map(Number);

/** Infinity sorts last. */
function quantileOf(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

function describe(starts: readonly FleetStart[]): string {
  const times = starts.map(({ halfRateMs }) => halfRateMs / 1000).sort((one, other) => one - other);
  const lowest = starts.map(({ lowestShare }) => lowestShare).sort((one, other) => one - other);
  const below = lowest.filter((share) => share < 0.5).length;
  const accepted = starts.reduce((sum, one) => sum + one.acceptedShare, 0) / starts.length;
  const refused = starts.reduce((sum, one) => sum + one.refused, 0) / starts.length;
  const commands = starts.reduce((sum, one) => sum + one.commandsPerSecond, 0) / starts.length;
  return [
    quantileOf(times, 0.5).toFixed(1).padStart(7),
    (times.at(-1) ?? NaN).toFixed(1).padStart(9),
    (lowest[0] ?? NaN).toFixed(2).padStart(7),
    `${String(below)}/${String(starts.length)}`.padStart(6),
    accepted.toFixed(3).padStart(8),
    refused.toFixed(0).padStart(8),
    commands.toFixed(1).padStart(8),
  ].join(' ');
}

const port = await freePort();
const server = await startRedisServer(port);
const url = `redis://127.0.0.1:${String(port)}`;
console.log(
  'limit 40/s; seconds to half of the rate; lowest five seconds after it, and runs in which they are below half',
);
console.log('loop   burst replicas  median     worst  lowest  below  goodput  refused   cmd/s');
try {
  for (const loop of values.loops.split(',') as Loop[])
    for (const burst of listOf(values.bursts))
      for (const replicas of [0, ...listOf(values.replicas)]) {
        const starts: FleetStart[] = [];
        for (const seed of seeds)
          starts.push(await measureStart(url, { loop, burst, replicas, seed, seconds: Number(values.seconds) }));
        const name = replicas === 0 ? 'alone' : String(replicas);
        console.log(`${loop.padEnd(6)} ${String(burst).padStart(5)} ${name.padStart(8)} ${describe(starts)}`);
      }
} finally {
  await server.stop();
}
