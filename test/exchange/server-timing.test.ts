import { describe, expect, it } from 'vitest';
import { createServerTimingTracer } from '../../src/exchange/server-timing.ts';
import type { TracedAttempt } from '../../src/exchange/request-tracer.ts';
import { ManualClock } from '../support/manual-clock.ts';

const attempt: TracedAttempt = { method: 'GET', baseUrl: new URL('http://a.example'), path: '/', headers: ['A', 'b'] };
const failed = {
  kind: 'failed',
  failure: {
    kind: 'reset',
    detail: 'x',
    proxyStatus: 'connection_terminated',
    cause: 'reset_after_sent',
    permanent: false,
  },
} as const;

describe('Server-Timing', () => {
  it('sums up waits and attempts, the one under way included, and leaves the fields that are sent as they are', async () => {
    const clock = new ManualClock();
    const watch = createServerTimingTracer(clock);
    watch.startWait('token');
    await clock.advance(3.04);
    watch.endWait();
    watch.startWait('queue');
    await clock.advance(10);
    watch.endWait();
    watch.startWait('body');
    await clock.advance(500);
    watch.endWait();
    expect(watch.startAttempt(attempt)).toEqual(['A', 'b']);
    await clock.advance(20);
    watch.endAttempt(failed);
    watch.startWait('queue');
    await clock.advance(5);
    watch.endWait();
    watch.startAttempt(attempt);
    await clock.advance(7);
    expect(watch.responseHeaders()).toEqual([
      'Server-Timing',
      'queue;dur=15, token;dur=3, upstream;dur=27, attempts;desc="2"',
    ]);
  });

  it('of a request that was refused while it waited tells that wait', async () => {
    const clock = new ManualClock();
    const watch = createServerTimingTracer(clock);
    watch.startWait('queue');
    await clock.advance(1234.56);
    expect(watch.responseHeaders()[1]).toBe('queue;dur=1234.6, token;dur=0, upstream;dur=0, attempts;desc="0"');
  });
});
