/** What is reported of the evidence, and that it influences no call. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import type { RefusalRule } from '../../../src/throttle/refusal-rule.ts';
import { RefusalObserver, signOfResponse } from '../../../src/throttle/refusal-evidence/refusal-observer.ts';
import { AUTO, seeded } from '../simulation.ts';
import { SteppingClock } from '../stepping-clock.ts';

/** Windows of a minute with a random number of calls, of which the first 50 are accepted. */
function feedHiddenLimit(observer: RefusalObserver, random: () => number, fromMs = 0, minutes = 30): void {
  for (let minute = 0; minute < minutes; minute++) {
    let at = fromMs + minute * 60_000;
    const calls = 60 + Math.floor(random() * 60);
    for (let call = 0; call < calls; call++) {
      at += 20 + random() * 200;
      const attempt = observer.start(at, false);
      observer.end(attempt, at + (call < 50 ? 20 : 3), call < 50 ? 'accepted' : 503, 'GET', '/quotes/1');
    }
  }
}

function createObserver(configured: readonly RefusalRule[] = []) {
  const events: SidecarEvent[] = [];
  const observe = (event: SidecarEvent): void => void events.push(event);
  const observer = new RefusalObserver({
    route: 'r',
    clock: new SteppingClock(),
    observe,
    configured: () => configured,
  });
  const proposals = () => events.filter((event) => event.kind === 'refusal-proposed');
  const refusals = () => events.filter((event) => event.kind === 'unconfigured-refusal');
  return { observer, proposals, refusals };
}

test('reports a proposal once, and again after a day', () => {
  const { observer, proposals, refusals } = createObserver();
  feedHiddenLimit(observer, seeded(1));
  expect(proposals()).toHaveLength(1);
  expect(refusals().length).toBeGreaterThan(300);
  feedHiddenLimit(observer, seeded(2), 3_600_000);
  expect(proposals()).toHaveLength(1);
  feedHiddenLimit(observer, seeded(3), 86_400_000 + 3_600_000);
  expect(proposals()).toHaveLength(2);
});

test('collects only while suspect responses have come within a day', () => {
  const { observer } = createObserver();
  const respond = (at: number, sign: 'accepted' | 503) => {
    observer.end(observer.start(at, false), at + 5, sign, 'GET', '/quotes/1');
  };
  respond(0, 'accepted');
  expect(observer.isCollecting).toBe(false);
  respond(10, 503);
  expect(observer.isCollecting).toBe(true);
  respond(86_000_000, 'accepted');
  expect(observer.isCollecting).toBe(true);
  respond(86_500_000, 'accepted');
  expect(observer.isCollecting).toBe(false);
});

test('proposes a line and a variable that keep the rules of now', () => {
  const configured = [{ status: 403, bodyContains: "it's too fast: #1" }];
  const { observer } = createObserver(configured);
  feedHiddenLimit(observer, seeded(1));
  const [proposal] = observer.proposals();
  const expected = [...configured, { status: 503 }];
  expect(parse(proposal?.setting ?? '')).toEqual({ throttle: { refusals: expected } });
  const quoted = /^SIDECAR_THROTTLE_REFUSALS='(.*)'$/.exec(proposal?.variable ?? '')?.[1] ?? '';
  expect(JSON.parse(quoted.replaceAll("'\\''", "'"))).toEqual(expected);
  expect(proposal).toMatchObject({ status: 503, acceptedPerWindow: 50 });
});

test('proposes nothing for a status that the setting names', () => {
  const { observer, proposals } = createObserver([{ status: 503 }]);
  feedHiddenLimit(observer, seeded(1));
  expect(observer.proposals()).toEqual([]);
  expect(proposals()).toEqual([]);
});

test('a throttle grants the same permits at the same instants with the evidence and without it', async () => {
  const run = async (isFed: boolean) => {
    const clock = new SteppingClock();
    const random = seeded(7);
    const throttle = createThrottle({
      ...{ route: 'default', throttle: AUTO, queue: { max: 1000, timeoutMs: 30_000 } },
      ...{ clock, random, observe: () => undefined },
    });
    const { refusalObserver } = throttle;
    const sentAt: number[] = [];
    const upstream = seeded(8);
    let accepted = 0;
    const call = async (): Promise<void> => {
      const ticket = throttle.enter(clock.now() + 60_000);
      const permit = ticket.tryTakePermit() ?? (await ticket.waitForPermit());
      sentAt.push(permit.grantedAt);
      const attempt = isFed ? refusalObserver.start(permit.grantedAt, false) : 0;
      await clock.sleep(2 + upstream() * 20);
      const isAccepted = clock.now() % 10_000 < 5000 + upstream() * 100 && ++accepted > 0;
      permit.report(isAccepted ? { kind: 'accepted' } : { kind: 'unknown' });
      if (isFed) refusalObserver.end(attempt, clock.now(), isAccepted ? 'accepted' : 503, 'GET', '/quotes/1');
      permit.release();
      ticket.leave();
    };
    const load = async (): Promise<void> => {
      const calls: Promise<void>[] = [];
      for (let number = 0; number < 3000; number++) {
        calls.push(call());
        await clock.sleep(upstream() * 60);
      }
      await Promise.all(calls);
    };
    const finished = load();
    await clock.runUntilIdle();
    await finished;
    return { sentAt, state: { ...throttle.state(), refusalProposals: undefined } };
  };
  const [fed, unfed] = [await run(true), await run(false)];
  expect(fed.sentAt).toHaveLength(3000);
  expect(fed).toEqual(unfed);
});

test.each([
  [200, false, 'accepted'],
  [404, false, 'accepted'],
  [403, false, 403],
  [420, false, 420],
  [503, false, 503],
  [529, false, 529],
  [403, true, 'other'],
  [503, true, 'other'],
  [401, false, 'other'],
  [429, true, 'other'],
  [500, false, 'other'],
  [502, false, 'fault'],
  [504, false, 'fault'],
])('a %s, explained: %s, counts as %s', (status, isExplained, sign) => {
  expect(signOfResponse(status, isExplained)).toBe(sign);
});
