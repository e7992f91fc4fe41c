/** What the leader of a fleet has learned from after leaders were displaced, died and came back: each call once. In virtual time. */
import { expect, test } from 'vitest';
import fc from 'fast-check';
import { decodeCalls } from '../../../src/fleet/shared-quota/call-report.ts';
import type { QuotaReply, QuotaRequest } from '../../../src/fleet/shared-quota/quota-store.ts';
import { startRedis } from '../../support/redis.ts';
import { FleetSimulation, SimulatedRedis, SimulationClock } from './fleet-simulation.ts';
import { ACCEPTED, rateLimited } from '../../throttle/fixture.ts';

const REPLICAS = 4;
/** Longer than the longest time between two reports of a replica. */
const ALL_REPORTED_MS = 5_000;
/** Longer than a replica counts as active after its last call. */
const IDLE_MS = 12_000;

interface CallCounts {
  readonly accepted: number;
  readonly refused: number;
}

/** What each leader has read since it began to learn. */
class LeaderReadings {
  readonly #byReplica = new Map<string, CallCounts>();
  last: CallCounts | undefined;

  add({ id, reportsReadUpTo }: QuotaRequest, { isLeader, reports }: QuotaReply): void {
    if (!isLeader) return;
    const before = reportsReadUpTo > 0 ? this.#byReplica.get(id) : undefined;
    let { accepted, refused } = before ?? { accepted: 0, refused: 0 };
    for (const { count, isRefused } of decodeCalls(reports, (at) => at, Infinity))
      if (isRefused) refused += count;
      else accepted += count;
    this.last = { accepted, refused };
    this.#byReplica.set(id, this.last);
  }
}

const replica = fc.nat(REPLICAS - 1);
const step = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.constant('calls'), replica, fc.integer({ min: 1, max: 8 })) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('refusal'), replica, fc.constant(1)) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('wait'), replica, fc.integer({ min: 1, max: 3_000 })) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('wait'), replica, fc.constant(IDLE_MS)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('leader dies'), replica, fc.constant(0)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('leader is cut off'), replica, fc.integer({ min: 500, max: 6_000 })) },
);

test('a leader learns from each call once after any changes of the leader', async () => {
  const server = await startRedis();
  let keys = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 30 }), async (steps) => {
      const clock = new SimulationClock();
      const redis = await SimulatedRedis.open(server.url, clock);
      const readings = new LeaderReadings();
      redis.onReply = (request, reply) => readings.add(request, reply);
      const world = new FleetSimulation({
        ...{ redis, clock, replicas: REPLICAS, limiter: () => ({ accepted: true }), load: { clients: 0 } },
        key: `changes-${String(keys++)}`,
      });
      const dead = new Set<number>();
      const made = { accepted: 0, refused: 0 };
      const call = (index: number, isRefused: boolean): void => {
        const ticket = world.throttles[index]!.enter(Infinity);
        const permit = dead.has(index) ? undefined : ticket.tryTakePermit();
        permit?.report(isRefused ? rateLimited() : ACCEPTED);
        permit?.release();
        ticket.leave();
        if (permit !== undefined) made[isRefused ? 'refused' : 'accepted']++;
      };
      const findLeader = (): number =>
        world.throttles.findIndex((one, index) => !dead.has(index) && one.state().fleet?.isLeader === true);
      await clock.runUntil(10);
      for (const [kind, index, amount] of steps) {
        if (kind === 'calls') for (let count = 0; count < amount; count++) call(index, false);
        else if (kind === 'refusal') call(index, true);
        else if (kind === 'wait') await clock.runUntil(clock.now() + amount);
        else {
          // What a replica has not reported is lost with it.
          await clock.runUntil(clock.now() + ALL_REPORTED_MS);
          const leader = findLeader();
          if (leader < 0) continue;
          if (kind === 'leader is cut off') world.cutOff(leader, amount);
          else if (dead.size < REPLICAS - 1) world.stopReplica(leader);
          if (kind === 'leader dies' && dead.size < REPLICAS - 1) dead.add(leader);
          else await clock.runUntil(clock.now() + amount);
        }
      }
      await clock.runUntil(clock.now() + 2 * IDLE_MS);
      world.stop();
      redis.close();
      expect(readings.last).toEqual(made);
    }),
    { numRuns: 60 },
  );
});
