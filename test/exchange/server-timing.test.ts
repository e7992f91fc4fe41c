import { describe, expect, it } from 'vitest';
import { watchTimes } from '../../src/exchange/server-timing.ts';
import type { AttemptBegun } from '../../src/exchange/watch.ts';
import { ManualClock } from '../support/manual-clock.ts';

const attempt: AttemptBegun = { method: 'GET', baseUrl: new URL('http://a.example'), path: '/', fields: ['A', 'b'] };
const failed = {
  kind: 'failed',
  failure: { kind: 'reset', detail: 'x', proxyStatus: 'connection_terminated', permanent: false },
} as const;

describe('Server-Timing', () => {
  it('sums up waits and attempts, the one under way included, and leaves the fields that are sent as they are', async () => {
    const clock = new ManualClock();
    const watch = watchTimes(clock);
    watch.waitBegins('token');
    await clock.advance(3.04);
    watch.waitEnds();
    watch.waitBegins('queue');
    await clock.advance(10);
    watch.waitEnds();
    watch.waitBegins('body');
    await clock.advance(500);
    watch.waitEnds();
    expect(watch.attemptBegins(attempt)).toEqual(['A', 'b']);
    await clock.advance(20);
    watch.attemptEnds(failed);
    watch.waitBegins('queue');
    await clock.advance(5);
    watch.waitEnds();
    watch.attemptBegins(attempt);
    await clock.advance(7);
    expect(watch.answerFields()).toEqual([
      'Server-Timing',
      'queue;dur=15, token;dur=3, upstream;dur=27, attempts;desc="2"',
    ]);
  });

  it('of a request that was refused while it waited tells that wait', async () => {
    const clock = new ManualClock();
    const watch = watchTimes(clock);
    watch.waitBegins('queue');
    await clock.advance(1234.56);
    expect(watch.answerFields()[1]).toBe('queue;dur=1234.6, token;dur=0, upstream;dur=0, attempts;desc="0"');
  });
});
