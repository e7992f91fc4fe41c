/** The cases of a whole run: all for our client, a selection for the peers, each with its number of seeds. */
import type { ClientEntry } from './clients/clients.ts';
import { type Case, listCases, type Scenario } from './scenario.ts';
import type { Job } from './play.ts';

/** The load and the number of replicas of the case that all clients run. */
export const COMMON_LOAD = '1.5×';

/** Cases of a scenario in which a client takes part, with the number of seeds. */
export function planScenario(scenario: Scenario, client: ClientEntry, seeds: number): Job[] {
  return listCases(scenario).flatMap((played) => {
    const count = client.name === 'ours' ? countForOurs(played, seeds) : countForPeer(played, client, seeds);
    return count === 0 ? [] : [createJob(client, played, count)];
  });
}

/** @param count seeds 1 to this */
export function createJob(client: ClientEntry, played: Case, count: number): Job {
  return { client: client.name, played, seeds: Array.from({ length: count }, (_, index) => index + 1) };
}

/** The case that every client runs in every scenario. */
export function isCommonCase({ load, conditions }: Case): boolean {
  return (load === COMMON_LOAD || load.endsWith('/s')) && conditions.hint === 'none' && conditions.replicas === 1;
}

function countForOurs({ conditions }: Case, seeds: number): number {
  return conditions.hint === 'none' && conditions.replicas === 1 ? seeds : Math.ceil(seeds / 2);
}

/** Clients with the known limit hardly differ from seed to seed, and one of them is slow. */
function countForPeer(played: Case, { hasKnownLimit }: ClientEntry, seeds: number): number {
  const { load, conditions } = played;
  const few = Math.ceil(seeds / (hasKnownLimit ? 10 : 4));
  if (isCommonCase(played)) return hasKnownLimit ? few : seeds;
  const isPlain = conditions.hint === 'none' && conditions.replicas === 1;
  if (isPlain) return load === '0.8×' ? few : 0;
  const isOther = conditions.hint === 'retry-after-seconds' || conditions.replicas === 4;
  return isOther ? few : 0;
}
