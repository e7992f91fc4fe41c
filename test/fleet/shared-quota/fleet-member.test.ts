/** A throttle in a fleet whose store is played by the test: when it is asked, and what a reload changes. */
import { describe, expect, it, test } from 'vitest';
import fc from 'fast-check';
import { FleetMember } from '../../../src/fleet/shared-quota/fleet-member.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import type {
  QuotaStore,
  QuotaListener,
  QuotaReply,
  QuotaRequest,
} from '../../../src/fleet/shared-quota/quota-store.ts';
import type { Throttle, ThrottleTerms } from '../../../src/throttle/throttle.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { ACCEPTED, Asking, rateLimited } from '../../throttle/fixture.ts';

/** Counts its reads. */
class WatchedClock extends ManualClock {
  looks = 0;

  override now(): number {
    this.looks++;
    return super.now();
  }
}

/** Replies after a millisecond with what the test has set, and applies what its leader publishes. */
class PlayedStore implements QuotaStore {
  readonly requests: QuotaRequest[] = [];
  readonly #clock: WatchedClock;
  listener: QuotaListener | undefined;
  isAway = false;
  reply: Partial<QuotaReply>;

  constructor(clock: WatchedClock, reply: Partial<QuotaReply>) {
    this.#clock = clock;
    this.reply = reply;
  }

  async exchange(request: QuotaRequest): Promise<QuotaReply | undefined> {
    this.requests.push(request);
    await new Promise<void>((resolve) => void this.#clock.after(1, resolve));
    if (this.isAway) return undefined;
    const { rate, burst, epoch, isTentative } = request.published ?? {};
    if (rate !== undefined && burst !== undefined && isTentative !== undefined)
      this.reply = { ...this.reply, rate, burst, isTentative };
    if (epoch !== undefined && epoch >= 0) this.reply = { ...this.reply, isFleetPaused: false };
    return { ...NOTHING_KNOWN, storeNow: this.#clock.wallNow(), ...this.reply };
  }

  listen(listener: QuotaListener): void {
    this.listener = listener;
  }
}

const NOTHING_KNOWN: QuotaReply = {
  storeNow: 0,
  isLeader: false,
  leaderLeftMs: Infinity,
  isTentative: false,
  epoch: 0,
  isFleetPaused: false,
  pausedUntil: 0,
  rate: Infinity,
  burst: 1,
  replicaCount: 2,
  rank: 1,
  oldestReportAt: 0,
  reportsLostAt: 0,
  retryInMs: 0,
  permitTimes: [],
  reports: '',
  reportsReadUpTo: 0,
  reportsKeptFrom: 0,
  grants: undefined,
  grantsRetryInMs: 0,
  version: 0,
  model: '',
};

const TERMS = { rate: 'auto', burst: 1, maxInFlight: 4, maxStreams: 100, maxPauseMs: 300_000 } as const;
const QUEUE = { max: 1000, timeoutMs: 30_000 };

async function join(throttle: Partial<ThrottleTerms['throttle']> = {}, reply: Partial<QuotaReply> = {}) {
  const clock = new WatchedClock();
  const store = new PlayedStore(clock, reply);
  const settings = { ...TERMS, ...throttle };
  const created = createThrottle({
    route: 'default',
    throttle: settings,
    queue: QUEUE,
    clock,
    random: () => 0.5,
    observe: () => undefined,
    fleet: new FleetMember({ store: store, id: 'one', settings, clock }),
  });
  store.listener?.onConnected();
  await clock.advance(10);
  return { clock, store, throttle: created };
}

/** A call that waits for nothing. */
function callOnce(throttle: Throttle): void {
  const ticket = throttle.enter(Infinity);
  const permit = ticket.tryTakePermit();
  permit?.report(ACCEPTED);
  permit?.release();
  ticket.leave();
}

test('applies a raised maxInFlight at once while the rate is learned together', async () => {
  const { throttle } = await join();
  expect(throttle.state().fleet?.state).toBe('joined');
  for (let call = 0; call < 20; call++) callOnce(throttle);
  expect(throttle.state().inFlightLimit).toBe(4);
  throttle.reconfigure({ throttle: { ...TERMS, maxInFlight: 16 }, queue: QUEUE });
  for (let call = 0; call < 20; call++) callOnce(throttle);
  expect(throttle.state().inFlightLimit).toBe(16);
  throttle.reconfigure({ throttle: { ...TERMS, maxInFlight: 6 }, queue: QUEUE });
  expect(throttle.state().inFlightLimit).toBe(6);
});

/** Of what is configured. */
type Changes = Partial<ThrottleTerms['throttle']>;

/** The others make 29 accepted calls, this one reloads, and then one of theirs is refused. @returns what it publishes */
async function rateOfLeader(changes?: Changes, before: Changes = {}): Promise<unknown> {
  const { clock, store, throttle } = await join(before, { isLeader: true });
  const startedAt = clock.wallNow();
  const calls = Array.from({ length: 29 }, (_, index) => `${String(startedAt + index * 50)} 1 5 0;`);
  await clock.advance(1450);
  store.reply = { ...store.reply, reports: calls.join(''), oldestReportAt: clock.wallNow() };
  await clock.advance(700);
  store.reply = { ...store.reply, reports: '' };
  await clock.advance(700);
  if (changes !== undefined) throttle.reconfigure({ throttle: { ...TERMS, ...before, ...changes }, queue: QUEUE });
  await clock.advance(10);
  const refusedAt = clock.wallNow();
  store.reply = { ...store.reply, reports: `${String(refusedAt)} 1 5 1;`, oldestReportAt: refusedAt + 1 };
  await clock.advance(710);
  const { rate, burst } = store.requests.findLast(({ published }) => published !== undefined)?.published ?? {};
  return { rate, burst };
}

/** The other replicas' reports come in two packets, in this order. @returns the rate that the leader publishes */
async function learnFrom(reports: readonly string[], inFirstPacket: number): Promise<number | undefined> {
  const { clock, store } = await join({}, { isLeader: true });
  const startedAt = clock.wallNow();
  const place = (report: string): string => report.replace(/^\d+/, (at) => String(startedAt + Number(at)));
  await clock.advance(10_000);
  for (const [from, to] of [
    [0, inFirstPacket],
    [inFirstPacket, reports.length],
  ]) {
    // Nothing is complete before the last packet.
    const oldestReportAt = to === reports.length ? clock.wallNow() : startedAt;
    store.reply = { ...store.reply, reports: reports.slice(from, to).map(place).join(''), oldestReportAt };
    await clock.advance(4_600);
    store.reply = { ...store.reply, reports: '' };
  }
  return store.requests.findLast(({ published }) => published !== undefined)?.published?.rate;
}

test('a leader learns from grants and responses in their order, for any order of the reports', async () => {
  // Twenty calls per second are accepted within 5 ms, for six seconds. The third slow refusal begins the common schedule.
  const accepted = Array.from({ length: 120 }, (_, index) => `${String(index * 50)} 1 5 0;`);
  const packets = fc.record({
    tookMs: fc.integer({ min: 0, max: 700 }),
    order: fc.array(fc.nat(), { minLength: 123, maxLength: 123 }),
    inFirstPacket: fc.integer({ min: 0, max: 122 }),
  });
  await fc.assert(
    fc.asyncProperty(packets, async ({ tookMs, order, inFirstPacket }) => {
      const refused = [2010, 4010, 6010].map((at) => `${String(at)} 1 ${String(tookMs)} 1;`);
      const inOrder = [...accepted, ...refused];
      const reports = inOrder
        .map((report, index) => ({ report, key: order[index] ?? 0 }))
        .sort((one, other) => one.key - other.key)
        .map(({ report }) => report);
      const rate = await learnFrom(inOrder, inOrder.length);
      expect(await learnFrom(reports, inFirstPacket)).toBe(rate);
      // Twenty a second were accepted until the first refusal, and as many between the others.
      expect(rate).toBeGreaterThan(15);
      expect(rate).toBeLessThan(25);
    }),
    { numRuns: 50 },
  );
});

describe('a reload', () => {
  it.each<[string, Changes]>([
    ['changes nothing', {}],
    ['changes only what is each replica’s own', { maxInFlight: 16, maxStreams: 5, maxPauseMs: 1000 }],
    ['changes a burst that is not used', { burst: 8 }],
  ])('that %s keeps what the leader has learned', async (_, changes) => {
    expect(await rateOfLeader(changes)).toEqual(await rateOfLeader());
  });

  it.each<[string, Changes, Changes, object]>([
    ['maxRate', {}, { maxRate: 1 }, { rate: 1, burst: 1 }],
    ['configured rate', { rate: 40, burst: 8 }, { rate: 20 }, { rate: 20, burst: 8 }],
    ['configured burst', { rate: 40, burst: 8 }, { burst: 2 }, { rate: 40, burst: 2 }],
  ])('that changes the %s changes what the leader publishes', async (_, before, changes, limit) => {
    expect(await rateOfLeader(changes, before)).toEqual(limit);
  });
});

test('calls that do not wait schedule no exchange', async () => {
  const { throttle, clock, store } = await join();
  const looksFor = (calls: number): number => {
    const { looks } = clock;
    for (let call = 0; call < calls; call++) callOnce(throttle);
    return clock.looks - looks;
  };
  const alone = createThrottle({
    ...{ route: 'default', throttle: TERMS, queue: QUEUE, clock, random: () => 0.5, observe: () => undefined },
  });
  const { looks } = clock;
  for (let call = 0; call < 100; call++) callOnce(alone);
  const looksAlone = clock.looks - looks;
  expect(looksFor(100)).toBe(looksAlone);
  // It is asked no less for it.
  const requestsBefore = store.requests.length;
  await clock.advance(4500);
  expect(store.requests.length).toBe(requestsBefore + 1);
  expect(store.requests.at(-1)).toMatchObject({ want: 0, activity: 'active' });
});

test('exchanges again soon after a disconnection, also when no request waits', async () => {
  const { clock, store } = await join();
  store.isAway = true;
  store.listener?.onDisconnected();
  const requestsBefore = store.requests.length;
  await clock.advance(250);
  expect(store.requests.length).toBe(requestsBefore + 1);
});

test('a leader ends a pause as soon as its last call has ended, also when no request waits', async () => {
  const rates = { rate: 40, burst: 8 };
  const { throttle, clock, store } = await join(rates, { ...rates, isLeader: true, replicaCount: 1 });
  store.reply = { ...store.reply, permitTimes: [clock.wallNow(), clock.wallNow() + 1] };
  const [refused, slow] = [0, 1].map(() => new Asking(throttle.enter(clock.now() + 60_000)));
  await clock.advance(5);
  store.reply = { ...store.reply, permitTimes: [], epoch: 1, isFleetPaused: true, pausedUntil: clock.wallNow() + 2000 };
  refused?.permit?.report(rateLimited('2'));
  refused?.permit?.release();
  refused?.ticket.leave();
  await clock.advance(2600);
  const hasResumed = (): boolean => store.requests.some(({ published }) => published?.epoch === 1);
  expect([slow?.outcome, hasResumed()]).toEqual(['granted', false]);
  slow?.permit?.release();
  slow?.ticket.leave();
  await clock.advance(0);
  expect(hasResumed()).toBe(true);
});

test('an update that others have pushed neither raises a configured rate nor pauses for longer than the longest pause', async () => {
  const maxPauseMs = 10_000;
  const number = fc.oneof(fc.double(), fc.integer({ min: 1, max: 9 }));
  const update = fc.record({
    epoch: number,
    isFleetPaused: fc.boolean(),
    pausedUntil: fc.oneof(fc.double(), fc.constant(Date.UTC(2040))),
    rate: fc.oneof(fc.constant(undefined), fc.constant(Infinity), fc.double({ min: 0.1, noNaN: true })),
    burst: fc.integer({ min: 1, max: 1e9 }),
    replicaCount: fc.oneof(fc.constant(undefined), fc.integer({ min: 1, max: 1_000 })),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(update, { minLength: 1, maxLength: 4 }), async (updates) => {
      const { clock, store, throttle } = await join({ rate: 40, burst: 5, maxPauseMs }, { rate: 40, burst: 5 });
      for (const one of updates) {
        store.listener?.onUpdate(one);
        // Nothing is leased.
        expect(throttle.enter(Infinity).tryTakePermit()).toBeUndefined();
        expect(throttle.state().rate).toBeLessThanOrEqual(40);
      }
      await clock.advance(maxPauseMs + 3_000);
      const asking = new Asking(throttle.enter(clock.now() + 60_000));
      const soon = Array.from({ length: 9 }, (_, index) => clock.wallNow() + index * 25);
      store.reply = { ...store.reply, permitTimes: soon };
      await clock.advance(5_000);
      expect(asking.outcome).toBe('granted');
    }),
    { numRuns: 50 },
  );
});
