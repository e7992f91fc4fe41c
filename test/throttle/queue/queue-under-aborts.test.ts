import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { QueueClass } from '../../../src/throttle/throttle.ts';
import { ACCEPTED, type Asking, Fixture, rateLimited } from '../fixture.ts';

type Step =
  | { readonly kind: 'enter'; readonly withinMs: number; readonly queueClass: QueueClass }
  | { readonly kind: 'leave' | 'accept' | 'refuse' | 'cancel' | 'retry'; readonly pick: number }
  | { readonly kind: 'wait'; readonly ms: number };

const NAMELESS: fc.Arbitrary<QueueClass> = fc.constant({ priority: 'normal', caller: '' });

const ANY_CLASS: fc.Arbitrary<QueueClass> = fc.record({
  priority: fc.constantFrom('high', 'normal', 'low'),
  caller: fc.constantFrom('', 'a', 'b'),
});

function step(queueClass: fc.Arbitrary<QueueClass>): fc.Arbitrary<Step> {
  return fc.oneof(
    fc.record({ kind: fc.constant('enter' as const), withinMs: fc.integer({ min: 50, max: 2000 }), queueClass }),
    fc.record({
      kind: fc.constantFrom('leave', 'accept', 'accept', 'refuse', 'cancel', 'retry' as const),
      pick: fc.nat(50),
    }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(300) }),
  );
}

/** Plays steps and checks after each that no request is lost, no ended one is served and the counts are right. */
class Play {
  readonly fixture: Fixture;
  readonly waiting: Asking[] = [];
  readonly holding: Asking[] = [];
  readonly gone = new Set<Asking>();
  readonly queueClasses = new Map<Asking, QueueClass>();

  constructor(rate: number | 'auto') {
    this.fixture = new Fixture({ rate, burst: 2, maxInFlight: 3, queueMax: 8, timeoutMs: 1000 });
  }

  async run(step: Step): Promise<void> {
    if (step.kind === 'wait') await this.fixture.clock.advance(step.ms);
    else if (step.kind === 'enter') this.#enter(step);
    else if (step.kind === 'leave') this.#leave(this.waiting[step.pick % this.waiting.length]);
    else this.#end(this.holding[step.pick % this.holding.length], step.kind);
    await this.fixture.clock.advance(0);
    this.#sort();
    const state = this.fixture.throttle.state();
    expect(state.queued).toBe(this.waiting.length);
    const { high, normal, low } = state.queuedByPriority;
    expect(high + normal + low).toBe(this.waiting.length);
    expect(state.inFlight).toBe(this.holding.length);
    expect(state.inFlight).toBeLessThanOrEqual(3);
  }

  #enter({ withinMs, queueClass }: { readonly withinMs: number; readonly queueClass: QueueClass }): void {
    try {
      const asking = this.fixture.ask(withinMs, queueClass);
      this.waiting.push(asking);
      this.queueClasses.set(asking, queueClass);
    } catch (error) {
      expect(error).toMatchObject({ name: 'SidecarError', code: expect.stringMatching(/^QUEUE_/) as unknown });
    }
  }

  #leave(asking: Asking | undefined): void {
    if (asking === undefined) return;
    asking.ticket.leave(new Error('gone'));
    this.gone.add(asking);
  }

  #end(asking: Asking | undefined, how: 'accept' | 'refuse' | 'cancel' | 'retry'): void {
    if (asking === undefined) return;
    this.holding.splice(this.holding.indexOf(asking), 1);
    if (how === 'cancel') asking.permit?.cancel();
    else asking.permit?.report(how === 'refuse' ? rateLimited('0.2') : ACCEPTED);
    asking.permit?.release();
    if (how !== 'retry') asking.ticket.leave();
  }

  #sort(): void {
    // In order of arrival: no request is served before an older one of the same class.
    for (const [index, asking] of this.waiting.entries()) {
      const older = this.waiting.slice(0, index).filter((each) => this.#standOf(each) === this.#standOf(asking));
      if (asking.outcome === 'granted') expect(older.map((each) => each.outcome)).not.toContain('waits');
    }
    for (const asking of [...this.waiting]) {
      if (asking.outcome === 'waits') continue;
      this.waiting.splice(this.waiting.indexOf(asking), 1);
      if (asking.outcome === 'refused') continue;
      expect(this.gone.has(asking)).toBe(false);
      this.holding.push(asking);
    }
  }

  #standOf(asking: Asking): string {
    return JSON.stringify(this.queueClasses.get(asking));
  }
}

it.each([
  ['auto' as const, 'nameless', NAMELESS],
  [20, 'nameless', NAMELESS],
  ['auto' as const, 'of all classes', ANY_CLASS],
  [20, 'of all classes', ANY_CLASS],
])(
  'keeps the order, loses no request and counts right under random aborts (rate %s, %s)',
  async (rate, _, queueClass) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step(queueClass), { minLength: 5, maxLength: 40 }), async (steps) => {
        const play = new Play(rate);
        for (const step of steps) await play.run(step);
        // Each waiting request is served or rejected within its time-out, as soon as slots are free.
        for (const asking of play.holding) asking.permit?.release();
        await play.fixture.clock.advance(2000);
        for (const asking of play.waiting) {
          await asking.settled;
          asking.permit?.release();
        }
        await play.fixture.clock.advance(2000);
        expect(play.fixture.throttle.state().queued).toBe(0);
      }),
      { numRuns: 60 },
    );
  },
);
