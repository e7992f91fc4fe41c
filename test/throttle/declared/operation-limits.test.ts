/** Declared limits with `match`: they hold back the calls that they count, and no others. */
import { describe, expect, it } from 'vitest';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import { ACCEPTED, Fixture, type Asking } from '../fixture.ts';

const POSTS: DeclaredLimit = {
  ...{ name: 'posts', calls: 2, per: '10s', window: 'sliding', timeZone: 'UTC' },
  ...{ countsRefused: true, spread: 'none', reserve: 0 },
  match: { methods: ['POST'], path: '/policies' },
};
const TENANTS: DeclaredLimit = { ...POSTS, name: 'tenants', match: { path: '/tenants/*' }, each: true };

/** Asks, and finishes the call at once where it is granted. */
async function call(fixture: Fixture, method: string, target: string, withinMs?: number): Promise<Asking> {
  const asking = fixture.ask(withinMs, undefined, { method, target });
  await fixture.clock.advance(0);
  asking.permit?.report(ACCEPTED);
  asking.permit?.release();
  return asking;
}

const outcomes = async (fixture: Fixture, method: string, targets: readonly string[]): Promise<string[]> => {
  const found: string[] = [];
  for (const target of targets) found.push((await call(fixture, method, target)).outcome);
  return found;
};

describe('a limit of an operation', () => {
  it('counts its calls alone', async () => {
    const fixture = new Fixture({ limits: [POSTS] });
    expect(await outcomes(fixture, 'POST', ['/policies', '/policies/7?draft=1'])).toEqual(['granted', 'granted']);
    expect(await outcomes(fixture, 'GET', ['/policies', '/policies', '/policies'])).not.toContain('waits');
    expect(await outcomes(fixture, 'POST', ['/policy', '/', '/policiesx'])).not.toContain('waits');
    expect((await call(fixture, 'POST', '/policies')).outcome).toBe('waits');
    expect(fixture.throttle.state().limits).toMatchObject([{ name: 'posts', used: 2, match: 'POST /policies' }]);
  });

  it('lets a waiting call go when the oldest of its own stops to count', async () => {
    const fixture = new Fixture({ limits: [POSTS] });
    await outcomes(fixture, 'POST', ['/policies', '/policies']);
    const waiting = await call(fixture, 'POST', '/policies');
    await fixture.clock.advance(9_900);
    expect(waiting.outcome).toBe('waits');
    await fixture.clock.advance(1_000);
    expect(waiting.outcome).toBe('granted');
  });

  it('rejects a call that may not wait as long, with its own name and wait, and no other', async () => {
    const fixture = new Fixture({ limits: [POSTS, { ...POSTS, name: 'all', calls: 100, match: undefined }] });
    await outcomes(fixture, 'POST', ['/policies', '/policies']);
    expect(() => fixture.enter(5_000, undefined, { method: 'POST', target: '/policies' })).toThrow(
      'The limit posts of 2 calls per 10s',
    );
    expect((await call(fixture, 'GET', '/policies', 5_000)).outcome).toBe('granted');
  });

  it('expects the wait behind its own waiting calls, and not behind others', async () => {
    const fixture = new Fixture({ limits: [POSTS], timeoutMs: 1e6 });
    await outcomes(fixture, 'POST', ['/policies', '/policies']);
    for (let count = 0; count < 4; count++) await call(fixture, 'POST', '/policies', 1e6);
    const rejected = () => fixture.enter(20_000, undefined, { method: 'POST', target: '/policies' });
    expect(rejected).toThrow(/in about 3\d\.\d s/);
  });

  it('goes on with its counts after a reload, and is gone for waiting calls when it is no longer declared', async () => {
    const fixture = new Fixture({ limits: [POSTS] });
    await outcomes(fixture, 'POST', ['/policies', '/policies']);
    const waiting = await call(fixture, 'POST', '/policies');
    const terms = { throttle: { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 1, maxPauseMs: 1e5 } } as const;
    const queue = { max: 1000, timeoutMs: 30_000 };
    fixture.throttle.reconfigure({ throttle: { ...terms.throttle, limits: [POSTS, TENANTS] }, queue });
    await fixture.clock.advance(0);
    expect(waiting.outcome).toBe('waits');
    fixture.throttle.reconfigure({ ...terms, queue });
    await fixture.clock.advance(0);
    expect(waiting.outcome).toBe('granted');
  });
});

describe('a limit with each', () => {
  it('counts each value by itself, in every spelling', async () => {
    const fixture = new Fixture({ limits: [TENANTS] });
    expect(await outcomes(fixture, 'GET', ['/tenants/a', '/tenants/b/x', '/tenants/%61?x=/tenants/c'])).not.toContain(
      'waits',
    );
    expect((await call(fixture, 'GET', '/tenants/b')).outcome).toBe('granted');
    expect(fixture.throttle.state().limits).toMatchObject([{ used: 2, values: 2 }]);
    expect((await call(fixture, 'GET', '//tenants//a', 60_000)).outcome).toBe('waits');
  });

  it('has 64 counts at most, and one for all further values', async () => {
    const fixture = new Fixture({ limits: [TENANTS] });
    for (let tenant = 0; tenant < 64; tenant++) await call(fixture, 'GET', `/tenants/${String(tenant)}`);
    expect(await outcomes(fixture, 'GET', ['/tenants/64', '/tenants/65', '/tenants/66'])).toEqual([
      'granted',
      'granted',
      'waits',
    ]);
    await fixture.clock.advance(20_000);
    expect(await outcomes(fixture, 'GET', ['/tenants/a', '/tenants/b', '/tenants/c'])).not.toContain('waits');
    expect(fixture.throttle.state().limits).toMatchObject([{ values: 64 }]);
  });
});
