/** Runs one case with one client and several seeds. */
import { findClient } from './clients/clients.ts';
import { type Figures, measure } from './figures.ts';
import type { Case } from './scenario.ts';
import { createRandom } from './seeded.ts';
import { VirtualClock } from './virtual-clock.ts';
import { installVirtualGlobals, withVirtualGlobals } from './virtual-globals.ts';
import { run, type RunOptions, type Tracing } from './world.ts';

/** The input of one worker. */
export interface Job {
  readonly client: string;
  readonly played: Case;
  readonly seeds: readonly number[];
  readonly leaveOut: string | undefined;
}

/** @returns the figures of each seed */
export async function play({ client, played, seeds, leaveOut }: Job, tracing?: () => Tracing): Promise<Figures[]> {
  const { needsVirtualGlobals, load } = findClient(client);
  if (needsVirtualGlobals) installVirtualGlobals();
  const createClient = await load();
  const { conditions } = played;
  const runs: Figures[] = [];
  for (const seed of seeds) {
    const clock = new VirtualClock(conditions.startsMs);
    const options: RunOptions = { conditions, seed, createClient, leaveOut, clock, tracing: tracing?.() };
    const record = needsVirtualGlobals
      ? await withVirtualGlobals(clock, createRandom(seed, 'globals'), () => run(options))
      : await run(options);
    runs.push(measure(record));
  }
  return runs;
}
