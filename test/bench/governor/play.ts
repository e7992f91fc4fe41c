/** Runs one case with one client and several seeds. */
import { findClient } from './clients/clients.ts';
import { type Figures, measure } from './figures.ts';
import type { Case } from './scenario.ts';
import { createRandom } from './seeded.ts';
import { VirtualClock } from './virtual-clock.ts';
import { installVirtualGlobals, withVirtualGlobals } from './virtual-globals.ts';
import { run, type RunConditions, type RunOptions, type RunRecord, type Tracing } from './world.ts';

/** The input of one worker. */
export interface Job {
  readonly client: string;
  readonly played: Case;
  readonly seeds: readonly number[];
}

/** @returns the figures of each seed */
export async function play({ client, played, seeds }: Job, tracing?: () => Tracing): Promise<Figures[]> {
  const runs: Figures[] = [];
  for (const seed of seeds) {
    const record = await playRun(client, played.conditions, seed, { tracing: tracing?.() });
    runs.push(measure(record));
  }
  return runs;
}

/** One run of a client by its name. */
export async function playRun(
  client: string,
  conditions: RunConditions,
  seed: number,
  extras: Pick<RunOptions, 'tracing'> = {},
): Promise<RunRecord> {
  const { needsVirtualGlobals, load } = findClient(client);
  if (needsVirtualGlobals) installVirtualGlobals();
  const createClient = await load();
  const clock = new VirtualClock(conditions.startsMs);
  const options: RunOptions = { conditions, seed, createClient, clock, ...extras };
  return needsVirtualGlobals
    ? withVirtualGlobals(clock, createRandom(seed, 'globals'), () => run(options))
    : run(options);
}
