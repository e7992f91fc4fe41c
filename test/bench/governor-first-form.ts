/**
 * What `auto` makes of hidden limits: 200 calls offered at once, five seeds each, in virtual time.
 * Run: node test/bench/governor-first-form.ts
 */
import {
  bucketLimiter,
  type Limiter,
  simulate,
  type SimulationResult,
  strictLimiter,
  windowLimiter,
} from '../throttle/simulation.ts';

const SEEDS = [1, 2, 3, 4, 5];
const LIMITERS: Record<string, () => Limiter> = {
  'strict 2/s': () => strictLimiter(2),
  'strict 10/s (nginx limit_req)': () => strictLimiter(10),
  'strict 50/s': () => strictLimiter(50),
  'strict 300/s': () => strictLimiter(300),
  'window 100 per 10 s': () => windowLimiter(100, 10_000, false),
  'window 100 per 10 s, Retry-After': () => windowLimiter(100, 10_000, true),
  'bucket 10/s, burst 20': () => bucketLimiter(10, 20),
};

async function play(limiter: () => Limiter, latencyMs: readonly [number, number]): Promise<SimulationResult[]> {
  const runs: SimulationResult[] = [];
  for (const seed of SEEDS) runs.push(await simulate({ limiter: limiter(), calls: 200, seed, latencyMs }));
  return runs;
}

function describeRuns(runs: readonly SimulationResult[]): Record<string, string> {
  const range = (pick: (run: SimulationResult) => number): string => {
    const values = runs.map(pick);
    return `${Math.min(...values)}..${Math.max(...values)}`;
  };
  return {
    served: range((run) => run.served),
    'answers of 429': range((run) => run.refusals),
    'last served, s': range((run) => Math.round(run.lastServedMs / 100) / 10),
  };
}

for (const latencyMs of [[0.5, 2] as const, [50, 20] as const]) {
  console.log(`One way ${latencyMs[0]} to ${latencyMs[0] + latencyMs[1]} ms`);
  const table: Record<string, Record<string, string>> = {};
  for (const [name, limiter] of Object.entries(LIMITERS)) table[name] = describeRuns(await play(limiter, latencyMs));
  console.table(table);
}
