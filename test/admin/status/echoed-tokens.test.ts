/**
 * An upstream that echoes the access token in the values and names of rate-limit header fields: no part of it is in an event, in /status, on
 * the page or in its stream. What the fields state is there.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SIGNAL_HEADERS } from '../../../src/throttle/signals/rate-limit-signal.ts';
import type { PlayedSidecar } from './played-sidecar.ts';
import { createServedSidecar } from './served-sidecar.ts';

const served = createServedSidecar();

/** Longer pieces of a token than this are found. */
const PIECE_LENGTH = 10;

const characters = (alphabet: string): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...alphabet.match(/./g)!), minLength: 20, maxLength: 60 });
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const tokens = fc.oneof(
  characters(`${LETTERS}${LETTERS.toUpperCase()}0123456789~+`),
  characters('0123456789abcdef'),
  characters('0123456789'),
  fc.tuple(characters(LETTERS), characters(`${LETTERS}0123456789`)).map((parts) => `eyJ${parts.join('.')}`),
);
/** The token stands for T. */
const values = fc.constantFrom(
  ...['T', 'Bearer T', '"T";r=0;t=5', 'T;r=0;t=5', '"a";r=0;t=5;pk="T"', '"a";r=0;T=5', 'limit=10, remaining=0, T=1'],
  ...[
    '12, T',
    '39/40;T',
    'api-usage=39/40, T',
    '20:1,T',
    'Sun, 01 Nov 2026 T',
    '2026-11-01T',
    '6m0sT',
    '0T',
    'T0',
    '0.T',
  ],
);
const names = fc.oneof(
  fc.constantFrom(...SIGNAL_HEADERS),
  fc.constantFrom('x-quota-left', 'x-throttle-note', 'x-limit-T', 'x-ratelimit-T', 'T-retry', 'rate-limit-T-T'),
);
const headers = fc.array(fc.tuple(names, values), { minLength: 1, maxLength: 6 });

function findPieces(token: string, text: string): string[] {
  const [hay, needle] = [text.toLowerCase(), token.toLowerCase()];
  return Array.from({ length: needle.length - PIECE_LENGTH + 1 }, (_, at) =>
    needle.slice(at, at + PIECE_LENGTH),
  ).filter((piece) => hay.includes(piece));
}

async function readAll(sidecar: PlayedSidecar): Promise<string> {
  const texts = await Promise.all([served.get('/status'), served.get('/'), served.readEvents()]);
  return [JSON.stringify(sidecar.events), ...texts].join('\n');
}

async function playRefusal(status: number, fields: Readonly<Record<string, string>>): Promise<PlayedSidecar> {
  const sidecar = served.play({
    ...{ wallStartMs: Date.UTC(2026, 10, 1), routes: ['auto'], credentials: 1, isFleet: false, maxPauseMs: 300_000 },
    snapshot: undefined,
  });
  sidecar.call(0, { status, headers: fields });
  await sidecar.clock.advance(50);
  return sidecar;
}

describe('an echoed token', () => {
  it('is in nothing that is kept of a response', async () => {
    await fc.assert(
      fc.asyncProperty(tokens, headers, fc.constantFrom(429, 403, 200, 503), async (token, fields, status) => {
        const echoed = fields.map(([name, value]) => [name.replaceAll('T', token), value.replaceAll('T', token)]);
        const sidecar = await playRefusal(status, Object.fromEntries(echoed) as Record<string, string>);
        expect(findPieces(token, await readAll(sidecar))).toEqual([]);
      }),
      { numRuns: 40 },
    );
  });
});

describe('what the fields of a refusal state', () => {
  it('is in /status, in the event and on the page as values', async () => {
    const sidecar = await playRefusal(429, {
      'Retry-After': '20',
      'X-RateLimit-Reset': 'Sun, 01 Nov 2026 00:00:20 GMT',
      'X-RateLimit-Reset-Requests': '6m0s',
      RateLimit: '"of-the-partner";r=0;t=20;pk=:c2VjcmV0:',
      'RateLimit-Policy': '"of-the-partner";q=100;w=60;qu="requests"',
      'X-App-Rate-Limit': '20:1,100:120',
      'X-Shopify-Shop-Api-Call-Limit': '39/40',
      'X-Limit-Note': 'ask sales',
      'X-Throttle-Token': 'hidden',
    });
    const fields = {
      'retry-after': 20,
      'x-ratelimit-reset': '2026-11-01T00:00:20.000Z',
      'x-ratelimit-reset-requests': 360,
      ratelimit: [{ r: 0, t: 20 }],
      'ratelimit-policy': [{ q: 100, w: 60 }],
      'x-app-rate-limit': [
        { calls: 20, seconds: 1 },
        { calls: 100, seconds: 120 },
      ],
      'x-shopify-shop-api-call-limit': [{ used: 39, limit: 40 }],
      'x-limit-note': { unparsed: 9 },
    };
    const status = JSON.parse(await served.get('/status')) as { throttle: { recentSignals: object[] } };
    expect(status.throttle.recentSignals).toMatchObject([{ fields }]);
    expect(sidecar.events).toContainEqual(expect.objectContaining({ kind: 'rate-limited', fields }));
    expect(await served.get('/')).toContain(
      'retry-after: 20; x-ratelimit-reset: 2026-11-01T00:00:20.000Z; x-ratelimit-reset-requests: 360; ratelimit: r=0 t=20; ' +
        'ratelimit-policy: q=100 w=60; x-app-rate-limit: calls=20 seconds=1, calls=100 seconds=120; ' +
        'x-shopify-shop-api-call-limit: used=39 limit=40; x-limit-note: not understood (9 characters)',
    );
  });
});
