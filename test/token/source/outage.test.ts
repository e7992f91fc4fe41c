/** An hour without a token endpoint, in virtual time: token requests, failed calls, time to recovery. */
import { expect, test } from 'vitest';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import { SourceHarness, UNAVAILABLE, watch } from './source-harness.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const LATENCY_MS = 100;

interface Outage {
  readonly result: TokenRequestResult;
  /** From a request to its failure. */
  readonly latencyMs: number;
  /** Age of the one-hour token at the start; below 45 minutes, when its refresh is due. */
  readonly tokenAgeMs: number;
  /** Between two calls; undefined = no call until the outage is over. */
  readonly callEveryMs: number | undefined;
}

interface Course {
  /** Token requests during the outage. */
  readonly requests: number;
  readonly failedWhileValid: number;
  /** Of all calls during the outage. */
  readonly failed: number;
  /** From the end of the outage to a call that succeeds, milliseconds. */
  readonly recoveryMs: number;
}

const DOWN: TokenRequestResult = { kind: 'unavailable', detail: 'auth.test refused the connection (ECONNREFUSED)' };
const HANGING: TokenRequestResult = {
  kind: 'unavailable',
  detail: 'auth.test sent no complete response within 10000 ms',
};
const HTML: TokenRequestResult = {
  kind: 'malformed',
  detail: 'the token endpoint answered 200 with a body that is no JSON',
};
const LIMITED: TokenRequestResult = { kind: 'unavailable', detail: 'auth.test answered 429', isLasting: true };
const BUSY: TokenRequestResult = { kind: 'unavailable', detail: 'auth.test answered 429', retryAfterMs: 30_000 };

/** The same sequence in every run. */
function createRandom(): () => number {
  let state = 7;
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
}

async function play({ result, latencyMs, tokenAgeMs, callEveryMs }: Outage, lastsMs: number): Promise<Course> {
  const harness = await SourceHarness.holding({ latencyMs: LATENCY_MS });
  Object.defineProperty(harness, 'random', { get: createRandom() });
  await harness.clock.advance(tokenAgeMs - LATENCY_MS);
  const requestsBefore = harness.requests;
  Object.assign(harness, { result, latencyMs });
  const calls: { readonly wasValid: boolean; readonly end: ReturnType<typeof watch> }[] = [];
  const call = (): void => {
    const wasValid = harness.source.current()?.token !== undefined;
    calls.push({ wasValid, end: watch(harness.source.waitForToken(harness.signal)) });
  };
  const until = harness.clock.now() + lastsMs;
  while (harness.clock.now() < until) {
    if (callEveryMs !== undefined) call();
    await harness.clock.advance(Math.min(callEveryMs ?? Infinity, until - harness.clock.now()));
  }
  const requests = harness.requests - requestsBefore;
  const failures = calls.filter(({ end }) => end.error !== undefined);
  Object.assign(harness, { result: undefined, latencyMs: LATENCY_MS });
  while (calls.at(-1)?.end.value === undefined && harness.clock.now() < until + HOUR_MS) {
    call();
    await harness.clock.advance(LATENCY_MS);
  }
  return {
    requests,
    failedWhileValid: failures.filter(({ wasValid }) => wasValid).length,
    failed: failures.length,
    recoveryMs: harness.clock.now() - until,
  };
}

/** The worst of some outages that end at different points of the probe interval. */
async function playOften(outage: Outage): Promise<Course> {
  const courses: Course[] = [];
  for (let extraMs = 0; extraMs < 5_000; extraMs += 1_300) courses.push(await play(outage, HOUR_MS + extraMs));
  const worst = (of: keyof Course): number => Math.max(...courses.map((course) => course[of]));
  return {
    requests: worst('requests'),
    failedWhileValid: worst('failedWhileValid'),
    failed: worst('failed'),
    recoveryMs: worst('recoveryMs'),
  };
}

const STEADY = { latencyMs: 50, tokenAgeMs: 30 * MINUTE_MS, callEveryMs: 1_000 };

test.each<[string, Outage, { requests: number; recoveryMs: number }]>([
  [
    'down, with a valid token',
    { ...STEADY, result: DOWN, tokenAgeMs: LATENCY_MS },
    { requests: 30, recoveryMs: 5_000 },
  ],
  [
    'down, half an hour without a token, no calls',
    { ...STEADY, result: DOWN, callEveryMs: undefined },
    { requests: 55, recoveryMs: 500 },
  ],
  [
    'down, half an hour without a token, a call a minute',
    { ...STEADY, result: DOWN, callEveryMs: MINUTE_MS },
    { requests: 85, recoveryMs: 5_000 },
  ],
  [
    'down, half an hour without a token, steady calls',
    { ...STEADY, result: DOWN },
    { requests: 450, recoveryMs: 5_000 },
  ],
  [
    '500 after 2 s, steady calls',
    { ...STEADY, result: UNAVAILABLE, latencyMs: 2_000 },
    { requests: 450, recoveryMs: 5_000 },
  ],
  // Every eighth probe takes its full time-out, because the endpoint may have become slow.
  [
    'hanging until its time-out, steady calls',
    { ...STEADY, result: HANGING, latencyMs: 10_000 },
    { requests: 400, recoveryMs: 10_200 },
  ],
  ['200 with HTML, steady calls', { ...STEADY, result: HTML }, { requests: 62, recoveryMs: 60_200 }],
  ['429 without a wait, steady calls', { ...STEADY, result: LIMITED }, { requests: 62, recoveryMs: 60_200 }],
  ['429 with Retry-After: 30, steady calls', { ...STEADY, result: BUSY }, { requests: 80, recoveryMs: 30_200 }],
])('an hour of %s', async (_name, outage, most) => {
  const course = await playOften(outage);
  expect(course.failedWhileValid).toBe(0);
  expect(course.requests).toBeLessThanOrEqual(most.requests);
  expect(course.requests).toBeGreaterThan(10);
  expect(course.recoveryMs).toBeLessThanOrEqual(most.recoveryMs);
});
