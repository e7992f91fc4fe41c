/** A token endpoint that responds without a token is asked again after 10 s, then each 60 s, whatever else happens meanwhile. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TokenRequestFailure, TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import { SourceHarness, watch } from './source-harness.ts';

const HOUR_MS = 3_600_000;
const LATENCY_MS = 100;
const MALFORMED: TokenRequestFailure = { kind: 'malformed', detail: 'auth.test answered 200 with no access_token' };
const LIMITED: TokenRequestFailure = { kind: 'unavailable', detail: 'auth.test answered 429', isLasting: true };
const ACCEPTED: TokenRequestFailure = { ...LIMITED, detail: 'auth.test answered 202' };
const STATED: TokenRequestFailure = { kind: 'unavailable', detail: 'auth.test answered 429', retryAfterMs: 17_000 };
const DOWN: TokenRequestFailure = { kind: 'unavailable', detail: 'auth.test answered 500' };
const LASTING: readonly TokenRequestFailure[] = [MALFORMED, LIMITED, ACCEPTED];

/** Responses of the endpoint in order, the last one for ever; undefined = a token. */
function respondWith(harness: SourceHarness, responses: readonly (TokenRequestResult | undefined)[]): void {
  const before = harness.requests;
  const next = () => responses[Math.min(harness.requests - before, responses.length) - 1];
  Object.defineProperty(harness, 'result', { get: next });
}

/** From each failure to the next request, milliseconds. */
function gapsAfter({ requestedAt }: SourceHarness, before: number): number[] {
  const own = requestedAt.slice(before);
  return own.slice(1).map((at, index) => at - ((own[index] ?? 0) + LATENCY_MS));
}

/** Moves time by seconds; each time a call comes, or none. */
async function pass(harness: SourceHarness, seconds: number, hasCalls: boolean): Promise<unknown[]> {
  const calls: { readonly error: unknown }[] = [];
  for (let second = 0; second < seconds; second++) {
    if (hasCalls) calls.push(watch(harness.source.waitForToken(harness.signal)));
    await harness.clock.advance(1_000);
  }
  return calls.flatMap(({ error }) => error ?? []);
}

describe.each([
  ['without a token', false],
  ['while a token is held', true],
])('%s', (_name, isHeld) => {
  test('any sequence of failures gets the pace of each of them, with calls and without', async () => {
    const failure = fc.constantFrom<TokenRequestFailure>(...LASTING, DOWN, STATED);
    const sequence = fc.array(failure, { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(sequence, fc.boolean(), async (responses, hasCalls) => {
        const harness = isHeld ? await SourceHarness.holding() : new SourceHarness();
        const before = harness.requests;
        respondWith(harness, [...responses, undefined]);
        if (isHeld) await harness.clock.advance(0.8 * HOUR_MS - LATENCY_MS);
        else harness.source.start();
        const errors = await pass(harness, responses.length * 61 + 1, hasCalls);
        expect(errors.every((error) => String(error).includes('No access token'))).toBe(true);
        if (isHeld) expect(errors).toEqual([]);
        const gaps = gapsAfter(harness, before);
        expect(gaps.length).toBeGreaterThanOrEqual(responses.length);
        let lasting = 0;
        for (const [index, failure] of responses.entries()) {
          if (LASTING.includes(failure)) expect(gaps[index]).toBe(++lasting === 1 ? 10_000 : 60_000);
          else if (failure === STATED) expect(gaps[index]).toBeGreaterThanOrEqual(17_000);
          else expect(gaps[index]).toBeLessThanOrEqual(hasCalls && !isHeld && index >= 5 ? 5_750 : 60_000);
        }
      }),
      { numRuns: 60 },
    );
  });
});

test.each(LASTING)(
  '90 s of $detail, with five calls a second: three requests, and each call is refused at once',
  async (failure) => {
    const harness = new SourceHarness({ result: failure });
    harness.source.start();
    const calls = [];
    for (let tick = 0; tick < 450; tick++) {
      calls.push(watch(harness.source.waitForToken(harness.signal)));
      await harness.clock.advance(200);
    }
    expect(harness.requestedAt.map((at) => Math.round(at / 1_000))).toEqual([0, 10, 70]);
    expect(calls.filter(({ error }) => error === undefined)).toEqual([]);
    for (const { error } of calls.slice(1, 40)) expect(error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    expect(calls[60]?.error).toMatchObject({ retryAfterMs: expect.closeTo(58_000, -4) as number });
  },
);

test('the first pause is 10 s again after a token', async () => {
  const harness = new SourceHarness({ lifetimeMs: 100_000 });
  respondWith(harness, [MALFORMED, MALFORMED, undefined, LIMITED]);
  harness.source.start();
  await pass(harness, 170, true);
  expect(gapsAfter(harness, 0).filter((_, index) => index !== 2)).toEqual([10_000, 60_000, 10_000]);
});

test('401s of a held token cause no request before it is due', async () => {
  const harness = await SourceHarness.holding();
  const held = await harness.source.waitForToken(harness.signal);
  await harness.clock.advance(60_000);
  respondWith(harness, [LIMITED]);
  for (let second = 0; second < 90; second++) {
    void harness.refuse(held);
    await harness.clock.advance(1_000);
  }
  expect(gapsAfter(harness, 1)).toEqual([10_000, 60_000]);
});

test.each(LASTING)('new credentials are tried at once after $detail', async (failure) => {
  const harness = new SourceHarness({ result: failure });
  harness.source.start();
  await harness.clock.advance(30_000);
  expect(harness.requests).toBe(2);
  harness.result = undefined;
  harness.onChange?.();
  await harness.clock.advance(LATENCY_MS);
  expect(harness.source.current()?.token.value).toBe('token-3');
});

test('a wait that another replica states is that of this one too', async () => {
  const harness = new SourceHarness({ result: { ...MALFORMED, retryAfterMs: 33_000, from: 'fleet' } });
  harness.source.start();
  await pass(harness, 50, true);
  expect(gapsAfter(harness, 0)).toEqual([33_000]);
});
