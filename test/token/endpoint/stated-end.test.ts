/** A number that cannot be a duration is the instant at which the token ends, by the clock of the server that states it. */
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import type { TokenEndpointOptions } from '../../../src/token/endpoint/token-endpoint.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { askOnce, buildEndpoint } from './endpoint.ts';
import { RawServer } from './raw-server.ts';

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;
const OUR_NOW = new ManualClock().wallNow();

let server: RawServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

interface Response {
  readonly fields: object;
  /** Our clock is right; this one is ahead by so much. Undefined: there is no `Date`. */
  readonly serverAheadMs?: number | undefined;
  readonly age?: string;
  readonly options?: Partial<TokenEndpointOptions>;
}

async function receive({ fields, serverAheadMs, age, options }: Response): Promise<TokenRequestResult> {
  const body = JSON.stringify({ access_token: 'abc', ...fields });
  const date = serverAheadMs === undefined ? [] : [`Date: ${new Date(OUR_NOW + serverAheadMs).toUTCString()}`];
  const head = ['HTTP/1.1 200 OK', `Content-Length: ${String(body.length)}`, ...date];
  if (age !== undefined) head.push(`Age: ${age}`);
  await server?.close();
  server = await RawServer.listen((socket) => socket.write(`${head.join('\r\n')}\r\n\r\n${body}`));
  return askOnce(buildEndpoint(server.url, options));
}

test('an instant in seconds or milliseconds gives what is left by the clock of the server', async () => {
  const form = fc.record({
    leftMs: fc.integer({ min: 1, max: 8_760 }).map((hours) => hours * HOUR_MS),
    // Whole seconds, as in a Date field.
    aheadSeconds: fc.option(fc.integer({ min: -86_400, max: 86_400 }), { nil: undefined }),
    inMilliseconds: fc.boolean(),
    expiresInUnit: fc.constantFrom('seconds' as const, 'milliseconds' as const),
    expiresInField: fc.constantFrom('expires_in', 'ext_expires_in', 'expires_at', 'data.expires_at'),
    asText: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(form, async ({ leftMs, aheadSeconds, inMilliseconds, expiresInUnit, expiresInField, asText }) => {
      const serverAheadMs = aheadSeconds === undefined ? undefined : aheadSeconds * 1000;
      const endsAt = OUR_NOW + (serverAheadMs ?? 0) + leftMs;
      // Seconds cannot be meant where the unit is milliseconds.
      const number = inMilliseconds || expiresInUnit === 'milliseconds' ? endsAt : endsAt / 1000;
      const fields = { [expiresInField]: asText ? String(number) : number };
      const result = await receive({ fields, serverAheadMs, options: { expiresInField, expiresInUnit } });
      expect(result).toEqual({ kind: 'ok', value: 'abc', lifetimeMs: leftMs, scope: undefined });
    }),
    { numRuns: 60 },
  );
});

describe('the least instant', () => {
  const assumed = (lifetimeFault: string) => ({ lifetimeMs: 300_000, lifetimeFault });
  test.each<[number, 'seconds' | 'milliseconds', object]>([
    [1e9, 'seconds', { lifetimeMs: YEAR_MS }],
    [1e9 + 1, 'seconds', assumed('expires_in that has passed')],
    [1e12, 'seconds', { lifetimeMs: YEAR_MS }],
    [1e12 + 1, 'seconds', assumed('expires_in that has passed')],
    [OUR_NOW / 1000, 'milliseconds', { lifetimeMs: OUR_NOW / 1000 }],
    [1e12, 'milliseconds', { lifetimeMs: YEAR_MS }],
    [1e12 + 1, 'milliseconds', assumed('expires_in that has passed')],
    [OUR_NOW, 'milliseconds', assumed('expires_in that has passed')],
    [OUR_NOW / 1000 + 0.9, 'seconds', assumed('expires_in that has passed')],
    [OUR_NOW / 1000 + 1, 'seconds', { lifetimeMs: 1_000 }],
    [2 ** 31 - 1, 'seconds', { lifetimeMs: YEAR_MS }],
    [Number.MAX_VALUE, 'seconds', { lifetimeMs: YEAR_MS }],
  ])('%d in %s', async (number, expiresInUnit, expected) => {
    const result = await receive({ fields: { expires_in: number }, options: { expiresInUnit } });
    expect(result).toEqual({ kind: 'ok', value: 'abc', scope: undefined, ...expected });
  });
});

test.each<[string, Response, object]>([
  ['a cache shortens a lifetime', { fields: { expires_in: 3600 }, age: '600' }, { lifetimeMs: 3_000_000 }],
  [
    'a cache shortens the way to an instant',
    { fields: { expires_in: OUR_NOW / 1000 + 7200 }, serverAheadMs: HOUR_MS, age: '600' },
    { lifetimeMs: 3_000_000 },
  ],
  [
    'a lifetime may have ended in a cache',
    { fields: { expires_in: 600 }, age: '600' },
    { lifetimeFault: 'expires_in that has passed' },
  ],
  ['an Age that is no number does not count', { fields: { expires_in: 3600 }, age: '-5, x' }, { lifetimeMs: HOUR_MS }],
  [
    'a Date does not change a lifetime',
    { fields: { expires_in: 60 }, serverAheadMs: 9 * HOUR_MS },
    { lifetimeMs: 60_000 },
  ],
])('%s', async (_name, response, expected) => {
  expect(await receive(response)).toMatchObject({ kind: 'ok', ...expected });
});
