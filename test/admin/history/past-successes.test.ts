/** What the verdict remembers: until when calls succeeded, and what has changed here since. */
import { describe, expect, it } from 'vitest';
import { PastSuccesses } from '../../../src/admin/history/past-successes.ts';
import { PlayedSamples } from '../samples/played-samples.ts';

const START = Date.UTC(2026, 10, 1, 14);

function setUp() {
  const played = new PlayedSamples();
  const clock = { wallNow: () => START + played.now };
  const successes = new PastSuccesses(played, clock);
  const call = (code: string, times = 1, source = 'upstream'): void => {
    played.count('requests_total', { route: 'orders', method: 'GET', code, source }, times).play(1);
    successes.sample();
  };
  return { played, clock, successes, call };
}

describe('past successes', () => {
  it('counts what each kind of response shows, and when it was last seen', () => {
    const { successes, call } = setUp();
    call('200', 3);
    call('404');
    call('401');
    call('502', 1, 'sidecar');
    const found = (['succeeded', 'authorized', 'answered'] as const).map((kind) => successes.find(kind, 'orders'));
    expect(found.map(({ count, untilWallAt }) => [count, untilWallAt - START])).toEqual([
      [3, 1000],
      [4, 2000],
      [5, 3000],
    ]);
    expect(successes.find('succeeded', 'stock')).toEqual({
      count: 0,
      untilWallAt: 0,
      change: undefined,
      sinceWallAt: START,
    });
  });

  it('of all routes together is that of the last one', () => {
    const { played, successes, call } = setUp();
    call('200', 3);
    played.count('requests_total', { route: 'stock', method: 'GET', code: '200', source: 'upstream' }, 2).play(1);
    successes.sample();
    expect(successes.find('succeeded', null)).toMatchObject({ count: 5, untilWallAt: START + 2000 });
    expect(successes.find('token', null).count).toBe(0);
  });

  it('a response that is none of the API is no success, also while its request goes on', () => {
    const { played, successes, call } = setUp();
    call('200', 5);
    played.count('foreign_responses_total', { route: 'orders' }).play(1);
    successes.sample();
    call('200');
    expect(successes.find('succeeded', 'orders')).toMatchObject({ count: 5, untilWallAt: START + 1000 });
  });

  it('names what changed after the last success: a reload with changes, new credentials', () => {
    const { played, successes, call } = setUp();
    successes.observe({ kind: 'configuration-read', outcome: 'ok', lines: ['log.level: debug'] });
    played.play(60);
    call('200');
    expect(successes.find('succeeded', 'orders').change).toBeUndefined();
    played.play(10);
    successes.observe({ kind: 'configuration-read', outcome: 'ok', lines: [] });
    successes.observe({ kind: 'configuration-read', outcome: 'invalid', lines: ['throttle.rate: wrong'] });
    expect(successes.find('succeeded', 'orders').change).toBeUndefined();
    successes.observe({ kind: 'credential-rotation', credential: 'default', outcome: 'taken' });
    expect(successes.find('succeeded', 'orders').change).toEqual({
      wallAt: START + 71_000,
      words: 'new credentials were applied',
    });
  });

  it('goes on after a restart with what was saved, and names the restart', () => {
    const before = setUp();
    before.call('200', 420);
    const saved: unknown = JSON.parse(JSON.stringify(before.successes.save(true)));
    const after = setUp();
    after.played.play(3600);
    after.successes.restore(saved);
    expect(after.successes.find('succeeded', 'orders')).toMatchObject({
      count: 420,
      untilWallAt: START + 1000,
      sinceWallAt: START,
      change: { words: 'the sidecar was restarted' },
    });
    after.call('200', 2);
    expect(after.successes.find('succeeded', 'orders').count).toBe(422);
  });

  it('is saved once a minute, and at the end', () => {
    const { successes, call } = setUp();
    call('200');
    const first = successes.save(false);
    call('200');
    expect(successes.save(false)).toBe(first);
    expect(successes.save(true)).not.toEqual(first);
  });

  it.each([
    null,
    7,
    'text',
    {},
    { since: 1, entries: 3 },
    { since: -1, entries: [] },
    { since: 1, entries: [['succeeded orders', -1, 5]] },
    { since: 1, entries: [['succeeded orders', 1, 1e300]] },
    { since: 1, entries: [[1, 1, 1]] },
  ])('ignores what no sidecar has written: %j', (saved) => {
    const { successes } = setUp();
    successes.restore(saved);
    const { count, sinceWallAt, change } = successes.find('succeeded', 'orders');
    expect({ count, sinceWallAt, change }).toEqual({ count: 0, sinceWallAt: START, change: undefined });
  });
});
