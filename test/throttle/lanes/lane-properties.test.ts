/** Any arrivals, operations, bodies, leavers, refusals and times: no request is lost, and nothing is used twice. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ReceivedCall } from '../../../src/throttle/declared/call-match.ts';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import type { Permit, QueueClass, Ticket } from '../../../src/throttle/throttle.ts';
import { ACCEPTED, rateLimited } from '../fixture.ts';
import { GET, LaneWorld, POST, PUT } from './lane-world.ts';

const CALLS = [POST, GET, PUT] as const;
const MAX_IN_FLIGHT = 3;

const DECLARED: DeclaredLimit = {
  name: 'puts',
  calls: 2,
  per: '1s',
  window: 'sliding',
  timeZone: 'UTC',
  countsRefused: true,
  spread: 'none',
  reserve: 0,
  match: { methods: ['PUT'] },
};

const STEP = fc.oneof(
  fc.record({
    kind: fc.constant('enter' as const),
    call: fc.nat(2),
    priority: fc.constantFrom('high' as const, 'normal' as const, 'low' as const),
    caller: fc.constantFrom('', 'a', 'b'),
    withinMs: fc.integer({ min: 50, max: 3_000 }),
    bodyMs: fc.constantFrom(0, 0, 5, 200, 1_500),
  }),
  fc.record({
    kind: fc.constantFrom('accept', 'accept', 'refuse', 'refuse with wait', 'cancel', 'retry', 'leave' as const),
    pick: fc.nat(50),
  }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(400) }),
);
type Step = typeof STEP extends fc.Arbitrary<infer Value> ? Value : never;

/** One request: reads its body, waits for its permit, and keeps what became of it. */
class Request {
  readonly ticket: Ticket;
  readonly call: ReceivedCall;
  readonly stand: string;
  phase: 'body' | 'waits' | 'holds' | 'ended' = 'body';
  permit: Permit | undefined;
  grants = 0;
  rejections = 0;
  attempts = 0;

  constructor(ticket: Ticket, call: ReceivedCall, { priority, caller }: QueueClass) {
    this.ticket = ticket;
    this.call = call;
    this.stand = `${call.method} ${priority} ${caller}`;
  }

  async read(sleep: () => Promise<void>): Promise<void> {
    try {
      await this.ticket.waitForBodySlot();
      await sleep();
      if (this.phase !== 'body') return;
      // A stalled body has lost its slot.
      await this.ticket.waitForBodySlot();
      this.ask();
    } catch {
      this.#reject();
    }
  }

  ask(): void {
    this.phase = 'waits';
    this.attempts++;
    this.ticket.waitForPermit().then(
      (permit) => {
        this.grants++;
        this.phase = 'holds';
        this.permit = permit;
      },
      () => this.#reject(),
    );
  }

  #reject(): void {
    this.rejections++;
    this.phase = 'ended';
  }
}

class Play {
  readonly world = new LaneWorld({ maxInFlight: MAX_IN_FLIGHT, queueMax: 10, timeoutMs: 2_000, limits: [DECLARED] });
  readonly requests: Request[] = [];
  readonly #left = new Set<Request>();

  async run(step: Step): Promise<void> {
    if (step.kind === 'wait') await this.world.clock.advance(step.ms);
    else if (step.kind === 'enter') this.#enter(step);
    else if (step.kind === 'leave') this.#leave(this.#pick(step.pick, 'body', 'waits'));
    else this.#end(this.#pick(step.pick, 'holds'), step.kind);
    await this.world.clock.advance(0);
    this.#check();
  }

  /** Until all have ended: each has been granted as often as it asked, or was rejected once. */
  async end(): Promise<void> {
    for (let round = 0; round < 20; round++) {
      for (const request of this.requests) if (request.phase === 'holds') this.#end(request, 'accept');
      await this.world.clock.advance(500);
    }
    expect(this.requests.map(({ phase }) => phase)).toEqual(this.requests.map(() => 'ended'));
    for (const request of this.requests) {
      expect(request.rejections).toBeLessThanOrEqual(1);
      const isUnserved = this.#left.has(request) || request.rejections === 1;
      if (!isUnserved) expect(request.grants).toBe(request.attempts);
    }
    const state = this.world.throttle.state();
    expect(state).toMatchObject({ queued: 0, inFlight: 0, readingBodies: 0, stalledBodies: 0 });
    expect(state.queuedByPriority).toEqual({ high: 0, normal: 0, low: 0 });
    for (const { queued } of state.lanes ?? []) expect(queued).toBe(0);
  }

  #enter({ call, priority, caller, withinMs, bodyMs }: Extract<Step, { kind: 'enter' }>): void {
    const received = CALLS[call] ?? POST;
    try {
      const ticket = this.world.enter(withinMs, { priority, caller }, received);
      const request = new Request(ticket, received, { priority, caller });
      this.requests.push(request);
      void request.read(() => (bodyMs === 0 ? Promise.resolve() : this.world.sleep(bodyMs)));
    } catch (error) {
      expect(error).toMatchObject({ name: 'SidecarError', code: expect.stringMatching(/^(QUEUE_|QUOTA_)/) as unknown });
    }
  }

  #leave(request: Request | undefined): void {
    if (request === undefined) return;
    this.#left.add(request);
    request.ticket.leave(new Error('gone'));
    request.phase = 'ended';
  }

  #end(request: Request | undefined, how: 'accept' | 'refuse' | 'refuse with wait' | 'cancel' | 'retry'): void {
    if (request === undefined) return;
    const { permit, ticket } = request;
    const isRefused = how === 'refuse' || how === 'refuse with wait';
    if (how === 'cancel') permit?.cancel();
    else {
      permit?.markSent();
      permit?.report(isRefused ? rateLimited(how === 'refuse' ? undefined : '0.3') : ACCEPTED);
      permit?.release();
    }
    if (how === 'retry' || isRefused) request.ask();
    else {
      ticket.leave();
      request.phase = 'ended';
    }
  }

  #check(): void {
    const state = this.world.throttle.state();
    const holding = this.requests.filter(({ phase }) => phase === 'holds');
    expect(state.inFlight).toBe(holding.length);
    expect(state.inFlight).toBeLessThanOrEqual(MAX_IN_FLIGHT);
    expect(state.readingBodies).toBeLessThanOrEqual(MAX_IN_FLIGHT);
    const { high, normal, low } = state.queuedByPriority;
    expect(high + normal + low).toBe(state.queued);
    // No request gets its first permit before an older one of the same operation, priority and caller that waits for its first.
    const firsts = new Map<string, Request>();
    for (const request of this.requests) {
      const older = firsts.get(request.stand);
      if (request.phase === 'waits' && request.attempts === 1) firsts.set(request.stand, older ?? request);
      if (request.phase === 'holds' && request.attempts === 1 && !this.#known.has(request))
        expect(older !== undefined && this.#waited.has(older)).toBe(false);
    }
    for (const request of holding) this.#known.add(request);
    this.#waited.clear();
    for (const request of this.requests) if (request.phase === 'waits') this.#waited.add(request);
  }

  /** Those that held their permits at the last check, and those that waited then. */
  readonly #known = new Set<Request>();
  readonly #waited = new Set<Request>();

  #pick(pick: number, ...phases: readonly Request['phase'][]): Request | undefined {
    const all = this.requests.filter(({ phase }) => phases.includes(phase));
    return all[pick % Math.max(1, all.length)];
  }
}

it('no request is lost, limits are kept and counts end at 0', async () => {
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(STEP, { minLength: 10, maxLength: 60 }), async (isClosed, steps) => {
      const play = new Play();
      if (isClosed) await play.world.close('1');
      for (const step of steps) await play.run(step);
      await play.end();
    }),
    { numRuns: 80 },
  );
});
