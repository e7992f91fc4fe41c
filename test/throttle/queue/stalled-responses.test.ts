/** Places in flight of responses whose clients take nothing, in virtual time. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Permit, ResponseClient } from '../../../src/throttle/throttle.ts';
import { roundsOf } from '../../support/rounds.ts';
import { ACCEPTED, type Asking, Fixture, rateLimited, type Settings } from '../fixture.ts';

class Client implements ResponseClient {
  takenBytes = 0;
  /** For how long it had stalled when its response was broken off. */
  readonly brokenOff: number[] = [];

  breakOff(stalledMs: number): void {
    this.brokenOff.push(stalledMs);
  }
}

/** A call whose response has begun, and whose client takes no more of it. */
function stall(fixture: Fixture): { readonly permit: Permit; readonly client: Client } {
  const permit = fixture.throttle.enter(1e6, undefined, false).tryTakePermit();
  if (permit === undefined) throw new Error('there is no place');
  permit.report(ACCEPTED);
  const client = new Client();
  permit.recordStall(client);
  return { permit, client };
}

function counts({ throttle }: Fixture) {
  const { inFlight, streams, queued, stalledResponses, stalledInFlight } = throttle.state();
  return { inFlight, streams, queued, stalledResponses, stalledInFlight };
}

const FIXED: Settings = { rate: 1000, burst: 1000, maxInFlight: 2, timeoutMs: 1e6 };

describe('a request that waits for a place', () => {
  it('gets that of the response that has stalled longest, once it has for a second', async () => {
    const fixture = new Fixture(FIXED);
    const [older, newer] = [stall(fixture), (await fixture.clock.advance(300), stall(fixture))];
    const asking = fixture.ask();
    await fixture.clock.advance(690);
    expect(asking.outcome).toBe('waits');
    await fixture.clock.advance(110);
    expect(asking.outcome).toBe('granted');
    expect(counts(fixture)).toMatchObject({ inFlight: 2, streams: 1, stalledResponses: 1, stalledInFlight: 0 });
    older.permit.recordStallEnd();
    older.permit.release();
    older.permit.release();
    newer.permit.release();
    asking.permit?.release();
    expect(counts(fixture)).toMatchObject({ inFlight: 0, streams: 0, stalledResponses: 0 });
  });

  it('gets it at once where the response has stalled for long, also where no request may wait', async () => {
    const fixture = new Fixture({ ...FIXED, queueMax: 0 });
    stall(fixture);
    stall(fixture);
    await fixture.clock.advance(5000);
    const ticket = fixture.throttle.enter(1e6, undefined, false);
    expect(ticket.tryTakePermit()).toBeUndefined();
    expect(await ticket.waitForPermit()).toBeDefined();
    expect(fixture.rejections).toEqual([]);
  });

  it('gets none of a client that takes some bytes in each second', async () => {
    const fixture = new Fixture(FIXED);
    const clients = [stall(fixture).client, stall(fixture).client];
    const asking = fixture.ask(1e9);
    for (let step = 0; step < 100; step++) {
      await fixture.clock.advance(900);
      for (const client of clients) client.takenBytes++;
    }
    expect(asking.outcome).toBe('waits');
    await fixture.clock.advance(2100);
    expect(asking.outcome).toBe('granted');
  });

  it('takes no place from a response while a pause or the rate holds it up', async () => {
    const fixture = new Fixture({ ...FIXED, maxStreams: 0 });
    const { client } = stall(fixture);
    const refused = fixture.throttle.enter(1e6, undefined, false).tryTakePermit();
    refused?.report(rateLimited('50'));
    refused?.release();
    const second = fixture.ask();
    await fixture.clock.advance(45_000);
    expect([second.outcome, client.brokenOff.length]).toEqual(['waits', 0]);
    await fixture.clock.advance(6000);
    expect(second.outcome).toBe('granted');
    expect(client.brokenOff).toEqual([]);
  });

  it.each([
    ['no stream may be open', { ...FIXED, maxStreams: 0 }],
    ['maxInFlight is configured', { ...FIXED, isMaxInFlightGiven: true }],
  ])('has the longest stalled response broken off after 30 s where %s', async (_, settings) => {
    const fixture = new Fixture(settings);
    const older = stall(fixture);
    await fixture.clock.advance(1000);
    const newer = stall(fixture);
    const asking = fixture.ask();
    await fixture.clock.advance(28_900);
    expect(asking.outcome).toBe('waits');
    await fixture.clock.advance(200);
    expect(asking.outcome).toBe('granted');
    expect(older.client.brokenOff).toHaveLength(1);
    expect(older.client.brokenOff[0]).toBeGreaterThanOrEqual(30_000);
    await fixture.clock.advance(100_000);
    expect(newer.client.brokenOff).toEqual([]);
    expect(counts(fixture)).toMatchObject({ inFlight: 2, streams: 0, queued: 0 });
  });

  it('has a stalled stream broken off, so that a stalled response becomes one', async () => {
    const fixture = new Fixture({ ...FIXED, maxStreams: 1 });
    const stream = stall(fixture);
    expect(stream.permit.becomeStream()).toBe(true);
    await fixture.clock.advance(10_000);
    const responses = [stall(fixture), stall(fixture)];
    const asking = fixture.ask();
    await fixture.clock.advance(20_100);
    expect(asking.outcome).toBe('granted');
    expect(stream.client.brokenOff).toHaveLength(1);
    expect(responses.flatMap(({ client }) => client.brokenOff)).toEqual([]);
    expect(counts(fixture)).toMatchObject({ inFlight: 2, streams: 1, stalledInFlight: 1 });
  });

  it('gets the place of a stream that ends for a stalled response, soon after', async () => {
    const fixture = new Fixture({ ...FIXED, maxStreams: 1 });
    const stream = fixture.throttle.enter(1e6, undefined, false).tryTakePermit();
    expect(stream?.becomeStream()).toBe(true);
    stall(fixture);
    stall(fixture);
    const asking = fixture.ask();
    await fixture.clock.advance(5000);
    expect(asking.outcome).toBe('waits');
    stream?.release();
    await fixture.clock.advance(100);
    expect(asking.outcome).toBe('granted');
  });

  it('gets no place where a learned limit counts the calls in flight', async () => {
    const learned = { kind: 'concurrency', windowMs: 0, limit: 3, rate: 100, margin: 1, used: 0 };
    const fixture = new Fixture({ rate: 'auto', timeoutMs: 1e6, learned });
    expect(fixture.throttle.state().learned?.kind).toBe('concurrency');
    const stalled: Client[] = [];
    while (counts(fixture).inFlight < fixture.throttle.state().inFlightLimit) {
      stalled.push(stall(fixture).client);
      await fixture.clock.advance(10);
    }
    const asking = fixture.ask();
    await fixture.clock.advance(20_000);
    expect([asking.outcome, counts(fixture).streams]).toEqual(['waits', 0]);
    await fixture.clock.advance(11_000);
    expect([asking.outcome, stalled.flatMap(({ brokenOff }) => brokenOff).length]).toEqual(['granted', 1]);
  });

  it('no timer runs while none waits', async () => {
    const fixture = new Fixture(FIXED);
    stall(fixture);
    stall(fixture);
    expect(fixture.clock.pendingTimers).toBe(0);
    const asking = fixture.ask();
    await fixture.clock.advance(0);
    expect(fixture.clock.pendingTimers).toBeGreaterThan(0);
    asking.ticket.leave();
    await fixture.clock.advance(0);
    expect(fixture.clock.pendingTimers).toBe(0);
  });
});

type Step =
  | { readonly kind: 'ask' }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'stall' | 'take' | 'resume' | 'stream' | 'finish' | 'cancel' | 'leave'; readonly pick: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('ask' as const) }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(10, 100, 950, 1100, 31_000) }),
  fc.record({
    kind: fc.constantFrom('stall', 'stall', 'take', 'resume', 'stream', 'finish', 'cancel', 'leave' as const),
    pick: fc.nat(50),
  }),
);

interface Call {
  readonly asking: Asking;
  readonly client: Client;
}

/** Plays calls whose clients stall, read again, leave, or end, in any order. */
class Play {
  readonly fixture: Fixture;
  calls: Call[] = [];

  constructor(settings: Settings) {
    this.fixture = new Fixture(settings);
  }

  async run(one: Step): Promise<void> {
    if (one.kind === 'ask') this.calls.push({ asking: this.fixture.ask(1e9), client: new Client() });
    else if (one.kind === 'wait') await this.fixture.clock.advance(one.ms);
    else if (this.calls.length > 0) this.#act(this.calls[one.pick % this.calls.length], one.kind);
    await this.fixture.clock.advance(0);
    // As an attempt does whose response was broken off.
    for (const { asking, client } of this.calls) if (client.brokenOff.length > 0) asking.permit?.release('other');
    this.calls = this.calls.filter(({ client }) => client.brokenOff.length === 0);
    await this.fixture.clock.advance(0);
  }

  #act(call: Call | undefined, kind: 'stall' | 'take' | 'resume' | 'stream' | 'finish' | 'cancel' | 'leave'): void {
    const permit = call?.asking.permit;
    if (call === undefined) return;
    if (kind === 'take') call.client.takenBytes++;
    else if (kind === 'leave') call.asking.ticket.leave();
    if (permit === undefined) {
      if (kind === 'leave') this.#remove(call);
      return;
    }
    if (kind === 'stall') permit.recordStall(call.client);
    else if (kind === 'resume') permit.recordStallEnd();
    else if (kind === 'stream') permit.becomeStream();
    else if (kind === 'cancel') permit.cancel();
    else if (kind === 'finish' || kind === 'leave') permit.release();
    if (kind !== 'finish' && kind !== 'cancel' && kind !== 'leave') return;
    permit.recordStallEnd();
    permit.release();
    call.asking.ticket.leave();
    this.#remove(call);
  }

  #remove(call: Call): void {
    this.calls = this.calls.filter((each) => each !== call);
  }
}

describe('the places', () => {
  it.each([false, true])('add up whatever the clients do (maxInFlight configured: %s)', async (isMaxInFlightGiven) => {
    const settings = { ...FIXED, maxInFlight: 3, maxStreams: 2, isMaxInFlightGiven };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const play = new Play(settings);
        for (const one of steps) {
          const yieldedBefore = counts(play.fixture).streams;
          await play.run(one);
          const { inFlight, streams, queued } = counts(play.fixture);
          const granted = play.calls.filter(({ asking }) => asking.permit !== undefined).length;
          expect(inFlight + streams).toBe(granted);
          expect(queued).toBe(play.calls.length - granted);
          expect(inFlight).toBeLessThanOrEqual(3);
          expect(streams).toBeLessThanOrEqual(2);
          // Nothing waits beside a free place.
          if (queued > 0) expect(inFlight).toBe(3);
          if (isMaxInFlightGiven && one.kind !== 'stream') expect(streams).toBeLessThanOrEqual(yieldedBefore);
        }
        for (const { asking } of play.calls) asking.ticket.leave();
        for (const { asking } of play.calls) asking.permit?.release();
        const none = { inFlight: 0, streams: 0, queued: 0, stalledResponses: 0, stalledInFlight: 0 };
        expect(counts(play.fixture)).toEqual(none);
        await play.fixture.clock.advance(0);
        expect(play.fixture.clock.pendingTimers).toBe(0);
      }),
      { numRuns: roundsOf({ check: 60, soak: 3000 }) },
    );
  });
});
