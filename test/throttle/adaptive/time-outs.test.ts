import { describe, expect, it } from 'vitest';
import type { CutReason } from '../../../src/throttle/throttle.ts';
import { playDeadlines } from '../deadline-world.ts';
import { ACCEPTED, type Asking, Fixture } from '../fixture.ts';

const DURATION_MS = 3_600_000;
const SERVICE_MS = 1000;

/** One call after another, each for a second, whether or not a client still waits for it; the others queue. */
function queueingUpstream(): (at: number) => number {
  let freeAt = 0;
  return (at) => {
    freeAt = Math.max(freeAt, at) + SERVICE_MS;
    return freeAt - at;
  };
}

describe('an upstream that queues what it cannot serve', () => {
  it.each([
    [60_000, 1.5],
    [60_000, 3],
    [20_000, 1.5],
    [10_000, 3],
  ])(
    'brings nine tenths of what it can serve, with deadlines of %d ms and %d calls per second',
    async (deadlineMs, perSecond) => {
      const { figures } = await playDeadlines({
        kinds: [{ path: '/calls', perSecond, deadlineMs, latencyMs: queueingUpstream() }],
        throttle: { rate: 'auto' },
        durationMs: DURATION_MS,
      });
      expect(figures[0]?.served).toBeGreaterThanOrEqual(0.9 * (DURATION_MS / SERVICE_MS));
    },
  );
});

describe('the number in flight', () => {
  /** A throttle whose limit has risen to 64 with calls of `ms`. */
  async function riseWith(ms: number): Promise<Fixture> {
    const fixture = new Fixture();
    for (let made = 0; made < 60; made++) await respond(fixture, ms);
    expect(fixture.throttle.state().inFlightLimit).toBe(64);
    return fixture;
  }

  async function respond(fixture: Fixture, ms: number): Promise<void> {
    const asking = fixture.ask();
    await asking.settled;
    await fixture.clock.advance(ms);
    asking.permit?.report(ACCEPTED);
    asking.permit?.release();
    asking.ticket.leave();
  }

  /** @returns the limit after as many calls at once as it allows, `most` at the most, which all end for `cut` */
  async function cutAll(fixture: Fixture, cut: CutReason, most = 40): Promise<number> {
    const calls: Asking[] = [];
    const count = Math.min(most, fixture.throttle.state().inFlightLimit);
    for (let made = 0; made < count; made++) calls.push(fixture.ask());
    for (const { settled } of calls) await settled;
    for (const { permit } of calls) permit?.markSent();
    await fixture.clock.advance(20_000);
    for (const { permit, ticket } of calls) {
      permit?.release(cut);
      ticket.leave();
    }
    return fixture.throttle.state().inFlightLimit;
  }

  it('falls to half once for all calls that were sent before, and to one at the least', async () => {
    const fixture = await riseWith(10_000);
    expect(await cutAll(fixture, 'time-out')).toBe(32);
    expect(await cutAll(fixture, 'time-out')).toBe(16);
    for (let round = 0; round < 10; round++) await cutAll(fixture, 'time-out');
    expect(fixture.throttle.state().inFlightLimit).toBe(1);
  });

  it('rises again after twenty rounds, by one with each', async () => {
    const fixture = await riseWith(10_000);
    for (let round = 0; round < 4; round++) await cutAll(fixture, 'time-out');
    expect(fixture.throttle.state().inFlightLimit).toBe(4);
    for (let made = 0; made < 20 * 4 - 1; made++) await respond(fixture, 100);
    expect(fixture.throttle.state().inFlightLimit).toBe(4);
    await respond(fixture, 100);
    expect(fixture.throttle.state().inFlightLimit).toBe(5);
    for (let made = 0; made < 5; made++) await respond(fixture, 100);
    expect(fixture.throttle.state().inFlightLimit).toBe(6);
  });

  it('does not fall for one call in ten', async () => {
    const fixture = await riseWith(10_000);
    for (let round = 0; round < 20; round++) {
      await cutAll(fixture, 'time-out', 1);
      for (let made = 0; made < 10; made++) await respond(fixture, 10_000);
    }
    expect(fixture.throttle.state().inFlightLimit).toBe(64);
  });

  it('does not fall when clients leave', async () => {
    expect(await cutAll(await riseWith(10_000), 'other')).toBe(64);
  });

  it('does not fall for calls that were left less than half of their deadline', async () => {
    const fixture = new Fixture({ maxInFlight: 5 });
    for (let made = 0; made < 60; made++) await respond(fixture, 10_000);
    const first = Array.from({ length: 5 }, () => fixture.ask());
    const later = Array.from({ length: 5 }, () => fixture.ask(40_000));
    await fixture.clock.advance(21_000);
    for (const { permit } of first) permit?.release('other');
    for (const { settled } of later) await settled;
    for (const { permit } of later) permit?.markSent();
    await fixture.clock.advance(19_000);
    for (const { permit } of later) permit?.release('time-out');
    expect(fixture.throttle.state().inFlightLimit).toBe(5);
  });

  it('does not fall for calls that hang while the others are quick', async () => {
    expect(await cutAll(await riseWith(200), 'time-out')).toBe(64);
  });
});
