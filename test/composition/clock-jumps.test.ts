/** Clocks that jump, audited where it counts: no token arrives at the upstream after its end, and no call fails for it. */
import { expect, it } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { sendToken, startInProcess } from './in-process.ts';
import { send } from './send.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** What happens in turn; a call is made after each. */
type Jump =
  /** Both clocks go on. */
  | { readonly kind: 'pass'; readonly ms: number }
  /** NTP sets the wall clock, and no time passes. */
  | { readonly kind: 'ntp'; readonly ms: number }
  /** Time passes that the monotonic clock does not see. */
  | { readonly kind: 'suspend'; readonly ms: number };

const pass = (ms: number): Jump => ({ kind: 'pass', ms });
const ntp = (ms: number): Jump => ({ kind: 'ntp', ms });
const suspend = (ms: number): Jump => ({ kind: 'suspend', ms });

it.each<[string, Jump[]]>([
  ['NTP sets the clock forward by 1 h', [pass(MINUTE_MS), ntp(HOUR_MS), pass(MINUTE_MS)]],
  ['NTP sets the clock back by 1 h, and an hour passes', [ntp(-HOUR_MS), pass(30 * MINUTE_MS), pass(40 * MINUTE_MS)]],
  [
    'forward by 1 h and back again',
    [ntp(HOUR_MS), pass(1000), ntp(-HOUR_MS), pass(50 * MINUTE_MS), pass(20 * MINUTE_MS)],
  ],
  ['a suspend of 2 h', [pass(MINUTE_MS), suspend(2 * HOUR_MS), pass(1000)]],
  ['a suspend of 1.5 h after the clock was set back by 1 h', [ntp(-HOUR_MS), suspend(1.5 * HOUR_MS)]],
  [
    'a suspend of 2 h, after which the clock is set back by 1 h',
    [suspend(2 * HOUR_MS), ntp(-HOUR_MS), pass(59 * MINUTE_MS)],
  ],
  ['five suspends of 25 min', Array.from({ length: 5 }, () => suspend(25 * MINUTE_MS))],
])('%s', async (_name, jumps) => {
  const clock = new ManualClock();
  let suspendedMs = 0;
  const trueNow = (): number => clock.now() + suspendedMs;
  const ends: number[] = [];
  const arrivals: { readonly bearer: string | undefined; readonly at: number }[] = [];
  const { url } = await startInProcess({
    clock,
    respondToTokenRequest: (_request, response, index) => {
      ends[index] = trueNow() + HOUR_MS;
      sendToken(response, index, 3600);
    },
    respond: ({ headers }, response) => {
      arrivals.push({ bearer: headers.authorization, at: trueNow() });
      response.end();
    },
  });
  expect((await send(url)).status).toBe(200);
  for (const jump of jumps) {
    if (jump.kind === 'pass') await clock.advance(jump.ms);
    else clock.stepWall(jump.ms);
    if (jump.kind === 'suspend') suspendedMs += jump.ms;
    expect((await send(url)).status).toBe(200);
  }
  expect(arrivals).toHaveLength(jumps.length + 1);
  for (const { bearer, at } of arrivals) {
    const index = Number(/^Bearer token-(\d+)-/.exec(bearer ?? '')?.[1]) - 1;
    expect(ends[index]).toBeGreaterThan(at);
  }
  expect(ends.length).toBeLessThanOrEqual(jumps.length + 1);
});
