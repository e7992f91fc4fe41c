/** Faults and latency of a scenario: repeatable by its seed, in the stated shares. */
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { DEFAULT_SCENARIO, drawFate, POLICIES_SCOPE, QUOTES_SCOPE } from '../../src/sandbox/scenario.ts';
import { roundsOf } from '../support/rounds.ts';
import { closeStarted as closePartners, Partner } from './partner.ts';
import { ask, closeStarted as closeServers, FORM, start } from './token-client.ts';

const QUOTE = {
  destination: 'ES',
  startDate: '2027-07-01',
  endDate: '2027-07-14',
  travellers: [{ birthDate: '1990-05-17' }],
};

afterEach(closePartners);
afterEach(closeServers);

test('a seed repeats every fate, shares hold, and a changed latency changes no fault', () => {
  const check = fc.property(fc.maxSafeNat(), fc.double({ min: 0, max: 0.5, noNaN: true }), (seed, share) => {
    const scenario = {
      ...DEFAULT_SCENARIO,
      seed,
      jitterMs: 100,
      faults: [
        { share, status: 500 },
        { share, breaks: 'cut' as const },
      ],
    };
    const fates = Array.from({ length: 1000 }, (_, call) => drawFate(scenario, call));
    expect(fates).toEqual(fates.map((_, call) => drawFate({ ...scenario }, call)));
    const slower = fates.map((_, call) => drawFate({ ...scenario, latencyMs: 7 }, call));
    expect(slower).toEqual(fates.map(({ fault, delayMs }) => ({ fault, delayMs: delayMs + 7 })));
    for (const fault of scenario.faults) {
      const count = fates.filter((fate) => fate.fault === fault).length;
      // Five standard deviations of a thousand draws.
      expect(Math.abs(count - share * 1000)).toBeLessThanOrEqual(5 * Math.sqrt(1000 * share * (1 - share)) + 1);
    }
    expect(fates.every(({ delayMs }) => delayMs >= 0 && delayMs < 100)).toBe(true);
  });
  fc.assert(check, { numRuns: roundsOf({ check: 20, soak: 500 }) });
});

describe('a fault', () => {
  test('with a status carries nothing out', async () => {
    const partner = await Partner.start({ faults: [{ share: 1, status: 502 }] });
    expect((await partner.post('/quotes-requests', QUOTE)).status).toBe(502);
  });

  test('reset loses the response', async () => {
    const partner = await Partner.start({ faults: [{ share: 1, breaks: 'reset' }] });
    await expect(partner.post('/quotes-requests', QUOTE)).rejects.toThrow('fetch failed');
  });

  test('cut sends the head and half of the body', async () => {
    const partner = await Partner.start({ faults: [{ share: 1, breaks: 'cut' }] });
    const response = await partner.post('/quotes-requests', QUOTE);
    expect(response.status).toBe(201);
    const reader = response.body?.getReader();
    const length = Number(response.headers.get('content-length'));
    const { value } = (await reader?.read()) as { value: Uint8Array };
    expect(value.length).toBe(Math.floor(length / 2));
    await expect(reader?.read()).rejects.toThrow();
  });
});

test('latency passes before the response', async () => {
  const partner = await Partner.start({ latencyMs: 50 });
  const response = partner.get('/nothing');
  await expect.poll(() => partner.clock.pendingTimers).toBe(1);
  await partner.clock.advance(50);
  expect((await response).status).toBe(404);
});

describe('the token endpoint', () => {
  test.each([
    ['a part', { scopes: [QUOTES_SCOPE] }, `${FORM}&scope=${POLICIES_SCOPE}+${QUOTES_SCOPE}`, { scope: QUOTES_SCOPE }],
    ['none', { scopes: [QUOTES_SCOPE] }, `${FORM}&scope=${POLICIES_SCOPE}`, { scope: '' }],
    ['none, for an audience', { scopes: [] }, FORM, { scope: '' }],
    ['all, without saying which', { scopeField: 'empty' as const }, FORM, { scope: '' }],
    [
      'all, without the field',
      { scopeField: 'absent' as const, tokenType: 'bearer' as const },
      FORM,
      { token_type: 'bearer' },
    ],
  ])('grants %s of the requested scopes', async (_name, scenario, body, expected) => {
    const server = await start(undefined, undefined, scenario);
    const response = await ask(server.tokenUrl, { body });
    expect(response.body).toMatchObject({ expires_in: 3600, ...expected });
    expect('scope' in response.body).toBe('scope' in expected);
  });
});
