/** Quota fields against what servers accept: wrong ones are not obeyed for long, and true ones cost next to no refusal. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ResponseClassifier } from '../../../src/exchange/response-classifier.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import type { ThrottleState } from '../../../src/throttle/throttle.ts';
import { createRandom } from '../../bench/governor/seeded.ts';
import { VirtualClock } from '../../bench/governor/virtual-clock.ts';
import { AUTO } from '../simulation.ts';

/** What a server with a fixed window states as remaining, by the calls that it has accepted in the window. */
type Statement = (accepted: number, calls: number) => number | undefined;

interface Server {
  readonly calls: number;
  readonly windowS: number;
  readonly phase: number;
  readonly seed: number;
}

interface Outcome {
  /** Share of what the server would accept, from the sixth minute on. */
  readonly goodput: number;
  readonly refusedShare: number;
  /** Once in each second of the time. */
  readonly states: readonly ThrottleState[];
}

const DURATION_MS = 1_200_000;
const JUDGED_FROM_MS = 300_000;
const FIELD = 'x-ratelimit-remaining';

/** @param share above 1, no field is checked */
async function playServer({ calls, windowS, phase, seed }: Server, state: Statement, share = 1): Promise<Outcome> {
  const clock = new VirtualClock(0);
  const random = createRandom(seed, 'fields');
  const observe = (): undefined => undefined;
  const queue = { max: 1000, timeoutMs: 30_000 };
  const throttle = createThrottle({ route: 'default', throttle: { ...AUTO, share }, queue, clock, random, observe });
  const classifier = new ResponseClassifier({ route: 'default', replicas: 1, clock, observe });
  const windowMs = windowS * 1000;
  let [window, used, accepted, judged, refused] = [-1, 0, 0, 0, 0];

  const respond = () => {
    const at = clock.now() + phase * windowMs;
    if (Math.floor(at / windowMs) !== window) used = 0;
    window = Math.floor(at / windowMs);
    const isAccepted = used < calls;
    if (isAccepted) {
      used++;
      accepted++;
      if (clock.now() >= JUDGED_FROM_MS) judged++;
    } else refused++;
    const remaining = state(used, calls);
    const resetS = Math.ceil(windowS - (at % windowMs) / 1000);
    const fields = ['x-ratelimit-limit', `${calls}`, FIELD, `${remaining}`, 'x-ratelimit-reset', `${resetS}`];
    return { status: isAccepted ? 200 : 429, statusText: '', headers: remaining === undefined ? [] : fields };
  };
  const attempt = async (ticket: ReturnType<typeof throttle.enter>): Promise<void> => {
    const permit = await ticket.waitForPermit();
    permit.markSent();
    await clock.sleepUntil(clock.now() + 20 + random() * 20);
    const response = respond();
    await clock.sleepUntil(clock.now() + 20 + random() * 20);
    permit.report(classifier.classify(response).permitReport);
    permit.release();
    if (response.status === 429) await attempt(ticket);
  };
  const call = async (): Promise<void> => {
    const ticket = throttle.enter(clock.now() + 60_000);
    await ticket.waitForBodySlot();
    await attempt(ticket);
    ticket.leave();
  };

  const states: ThrottleState[] = [];
  const meanGapMs = windowMs / calls / 1.5;
  for (let at = 0; at < DURATION_MS; at += -Math.log(1 - random()) * meanGapMs)
    clock.exactlyAt(at, () => void call().catch(observe));
  for (let at = 0; at < DURATION_MS; at += 1000) clock.exactlyAt(at, () => states.push(throttle.state()));
  await clock.runUntil(DURATION_MS);
  const possible = ((DURATION_MS - JUDGED_FROM_MS) / windowMs) * calls;
  return { goodput: judged / possible, refusedShare: refused / (accepted + refused), states };
}

const server = fc.record({
  calls: fc.integer({ min: 40, max: 300 }),
  windowS: fc.integer({ min: 10, max: 60 }),
  phase: fc.double({ min: 0, max: 1, noNaN: true }),
  seed: fc.nat(),
});
const TRUE: Statement = (used, calls) => calls - used;
const NONE: Statement = () => undefined;

describe('a field that states', () => {
  it.each<[string, Statement]>([
    ['always 0', () => 0],
    ['the used calls', (used) => used],
    ['always the same few calls', (_, calls) => Math.floor(calls / 20)],
    ['half of the limit', (used, calls) => Math.max(0, Math.floor(calls / 2) - used)],
  ])('%s is disbelieved: nine tenths of the limit are used after five minutes', async (_, state) => {
    const property = fc.asyncProperty(server, async (one) => {
      const { goodput, states } = await playServer(one, state);
      expect(goodput).toBeGreaterThan(0.9);
      expect(states.some(({ disbelievedFields }) => disbelievedFields?.includes(FIELD))).toBe(true);
    });
    await fc.assert(property, { numRuns: 2, seed: 45 });
  });

  it('the truth costs at most one more refused call in a thousand, and is named while requests wait for it', async () => {
    const property = fc.asyncProperty(server, async (one) => {
      const { goodput, refusedShare, states } = await playServer(one, TRUE);
      expect(goodput).toBeGreaterThan(0.95);
      const unchecked = await playServer(one, TRUE, 2);
      expect(refusedShare).toBeLessThan(unchecked.refusedShare + 0.001);
      expect(states.filter(({ heldBy }) => heldBy === FIELD).length).toBeGreaterThan(100);
      expect(states.every(({ disbelievedFields }) => disbelievedFields?.length === 0)).toBe(true);
    });
    await fc.assert(property, { numRuns: 4, seed: 45 });
  });

  it('nothing holds back no request', async () => {
    const { states } = await playServer({ calls: 100, windowS: 10, phase: 0, seed: 1 }, NONE);
    expect(states.every(({ heldBy }) => heldBy === undefined)).toBe(true);
  });
});
