/** What a lane has learned outlasts the process. */
import { describe, expect, it } from 'vitest';
import { formatLearnedState, parseLearnedState } from '../../../src/throttle/state-file.ts';
import type { LearnedState } from '../../../src/throttle/throttle.ts';
import { ACCEPTED, Fixture, rateLimited } from '../fixture.ts';
import { GET, LaneWorld, POST } from './lane-world.ts';

const OWNER = { upstream: 'https://api.example.com', client: 'hash-of-the-client' };

async function learn(): Promise<{ readonly world: LaneWorld; readonly entry: object }> {
  const world = new LaneWorld();
  await world.close('5');
  const state = world.throttle.snapshot();
  if (state === undefined) throw new Error('Nothing was learned.');
  return { world, entry: formatLearnedState(state, OWNER) };
}

function read(entry: object): LearnedState | undefined {
  const parsed = parseLearnedState(JSON.parse(JSON.stringify(entry)), OWNER, Date.UTC(2026, 10, 1));
  return parsed.kind === 'read' ? parsed.state : undefined;
}

describe('a confirmed lane', () => {
  it('is there after a restart with its limit, and the next closure decides whether it is still so', async () => {
    const { world, entry } = await learn();
    const next = new LaneWorld({ restored: read(entry) });
    const [{ learned } = {}] = world.lanes;
    expect(next.lanes).toMatchObject([{ operation: 'POST /policies', isConfirmed: false, refused: 0 }]);
    expect(next.lanes[0]?.learned).toMatchObject({ kind: learned?.kind, limit: learned?.limit });
    await next.warmUp();
    await next.clock.advance(4_000);
    await next.refuseOnce('5');
    expect(next.lanes).toMatchObject([{ isConfirmed: true, refused: 1 }]);
  });

  it('is not restored where lanes are not wanted', async () => {
    const { entry } = await learn();
    expect(new Fixture({ restored: read(entry) }).throttle.state().lanes).toEqual([]);
  });

  it("is the route's after a restart, if the next closure shows that", async () => {
    const { entry } = await learn();
    const next = new LaneWorld({ restored: read(entry) });
    await next.warmUp();
    for (const call of [POST, GET, { method: 'PUT', target: '/claims' }]) await next.responds(call, rateLimited('5'));
    expect(next.throttle.state().pausedMs).toBeGreaterThan(0);
    expect((await next.asks(GET)).outcome).toBe('waits');
  });
});

it('a lane that is only being tested is not kept', async () => {
  const world = new LaneWorld({ restored: undefined });
  await world.warmUp();
  await world.responds(POST, rateLimited('5'));
  expect(world.lanes).toHaveLength(1);
  expect(world.throttle.snapshot()?.lanes).toBeUndefined();
});

describe('an entry with lanes', () => {
  it.each([
    ['no list', 7],
    ['without a name', [{ governor: {} }]],
    ['without a limit', [{ operation: 'GET /' }]],
    ['with another limit than an object', [{ operation: 'GET /', governor: 'x' }]],
    ['of null', [null]],
    ['too many', Array.from({ length: 17 }, (_, index) => ({ operation: `GET /${String(index)}`, governor: {} }))],
  ])('that are %s is unusable', async (_, lanes) => {
    const { entry } = await learn();
    expect(parseLearnedState({ ...entry, lanes }, OWNER, Date.UTC(2026, 10, 1))).toEqual({
      kind: 'unusable',
      reason: 'is not what a sidecar writes',
    });
  });

  it('whose limits are of another form starts anew', async () => {
    const lanes = [{ operation: 'POST /policies', governor: { anything: [1, 'x'] } }];
    const world = new LaneWorld({
      restored: { version: 1, wallAt: Date.UTC(2026, 10, 1), governor: undefined, lanes },
    });
    expect(world.lanes[0]?.usage).toBeUndefined();
    expect((await world.responds(POST, ACCEPTED)).outcome).toBe('granted');
  });
});
