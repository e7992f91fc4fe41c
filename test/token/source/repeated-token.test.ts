/** A server that sends the same token again until it ends (WSO2, PayPal), and callers that need one all the time. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { withKnownLifetimes } from '../../../src/token/endpoint/assumed-lifetime.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import { HeldTokenSource } from '../../../src/token/source/token-source.ts';
import type { TokenSource } from '../../../src/token/token.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { parseResponse } from '../endpoint/endpoint.ts';

interface ServerSetup {
  readonly lifetimeMs: number;
  /** What a repetition states. */
  readonly repeats: (leftMs: number) => unknown;
  /** How much later than stated the token really ends, milliseconds. */
  readonly lateMs?: number;
  readonly latencyMs?: number;
  /** A new one comes so long before the end of the old one. Default 0. */
  readonly earlyMs?: number;
}

class RepeatingServer {
  readonly clock = new ManualClock();
  readonly events: SidecarEvent[] = [];
  readonly source: TokenSource;
  /** Instants at which requests arrived. */
  readonly requestedAt: number[] = [];
  readonly endOf = new Map<string, number>();
  readonly #setup: ServerSetup;
  #token = '';

  constructor(setup: ServerSetup) {
    this.#setup = setup;
    const { clock } = this;
    const observe = (event: SidecarEvent) => void this.events.push(event);
    const send = withKnownLifetimes(() => this.#send(), {
      credential: 'default',
      defaultLifetimeMs: 300_000,
      clock,
      observe,
    });
    this.source = new HeldTokenSource({
      credential: 'default',
      scope: undefined,
      fetcher: { fetch: () => send() },
      credentialWatch: undefined,
      invalidationCooldownMs: 5000,
      settleMs: 2000,
      clock,
      random: () => 0.5,
      observe,
    });
  }

  get tokens(): number {
    return this.endOf.size;
  }

  /** As the log and the page show them. */
  get shownLifetimes(): number[] {
    return this.events.flatMap((event) => (event.kind === 'token-requested' ? (event.lifetimeMs ?? []) : []));
  }

  async #send(): Promise<TokenRequestResult> {
    const { latencyMs = 100, lifetimeMs, repeats, lateMs = 0, earlyMs = 0 } = this.#setup;
    await this.#wait(latencyMs / 2);
    const now = this.clock.now();
    this.requestedAt.push(now);
    const leftMs = (this.endOf.get(this.#token) ?? -Infinity) - now;
    const isNew = leftMs <= earlyMs;
    if (isNew) {
      this.#token = `token-${String(this.tokens + 1)}`;
      this.endOf.set(this.#token, now + lifetimeMs + lateMs);
    }
    const expiresIn = isNew ? lifetimeMs / 1000 : repeats(leftMs - lateMs);
    await this.#wait(latencyMs / 2);
    return parseResponse(JSON.stringify({ access_token: this.#token, expires_in: expiresIn }));
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve));
  }

  /** Calls that need a token, one each `intervalMs`. @returns what failed */
  async callFor(durationMs: number, intervalMs: number): Promise<string[]> {
    const faults: string[] = [];
    const call = async (): Promise<void> => {
      try {
        const { value } = await this.source.waitForToken(new AbortController().signal);
        if ((this.endOf.get(value) ?? 0) <= this.clock.now()) faults.push(`${value} has ended`);
      } catch (error) {
        faults.push(String(error));
      }
    };
    for (const end = this.clock.now() + durationMs; this.clock.now() < end;) {
      void call();
      await this.clock.advance(intervalMs);
    }
    return faults;
  }
}

const floor = (leftMs: number) => Math.floor(leftMs / 1000);
const STATEMENTS: readonly (readonly [string, (leftMs: number) => unknown])[] = [
  ['0', () => 0],
  ['nothing', () => undefined],
  ['-1', () => -1],
  ['"0"', () => '0'],
  ['the rest, rounded down', floor],
  ['the rest, rounded up', (leftMs) => Math.ceil(leftMs / 1000)],
  ['the rest, to the millisecond', (leftMs) => leftMs / 1000],
];

describe.each(STATEMENTS)('a repetition that states %s', (_name, repeats) => {
  test('costs a few requests for each token, and no call fails or uses a token that has ended', async () => {
    for (const lateMs of [-1000, -300, 0, 300, 1000]) {
      const server = new RepeatingServer({ lifetimeMs: 600_000, repeats, lateMs });
      expect(await server.callFor(1_830_000, 500)).toEqual([]);
      expect(server.tokens).toBe(4);
      expect(server.requestedAt.length).toBeLessThanOrEqual(server.tokens * 5);
      expect(server.source.state()).toMatchObject({ consecutiveFailures: 0, status: 'valid' });
      expect(server.events.filter(({ kind }) => kind === 'warning')).toEqual([]);
      expect(server.shownLifetimes.filter((ms) => ms < 0)).toEqual([]);
    }
  });

  test('costs a few requests for each token without calls', async () => {
    const server = new RepeatingServer({ lifetimeMs: 600_000, repeats });
    server.source.start();
    await server.clock.advance(1_830_000);
    expect(server.tokens).toBe(4);
    expect(server.requestedAt.length).toBeLessThanOrEqual(server.tokens * 4);
  });
});

test('no lifetime: the next request comes at the end that is known', async () => {
  const server = new RepeatingServer({ lifetimeMs: 3_600_000, repeats: () => 0, latencyMs: 0 });
  server.source.start();
  await server.clock.advance(3_599_999);
  const [first = 0, second = 0] = server.requestedAt;
  expect(server.requestedAt).toHaveLength(2);
  expect(second - first).toBeGreaterThan(2_700_000);
  await server.clock.advance(1);
  expect(server.requestedAt.slice(2)).toEqual([first + 3_600_000]);
  expect(server.tokens).toBe(2);
});

test('the last seconds: 5 s, 4 s, 3 s … make no loop', async () => {
  const server = new RepeatingServer({ lifetimeMs: 600_000, repeats: floor, lateMs: 1000 });
  await server.callFor(590_000, 1000);
  const before = server.requestedAt.length;
  expect(await server.callFor(15_000, 100)).toEqual([]);
  expect(server.tokens).toBe(2);
  expect(server.requestedAt.length - before).toBeLessThanOrEqual(3);
});

test('a token that the server replaces minutes before its end is renewed ahead', async () => {
  const server = new RepeatingServer({ lifetimeMs: 3_600_000, repeats: floor, earlyMs: 300_000 });
  server.source.start();
  let shortestMs = Infinity;
  for (let minute = 1; minute < 240; minute++) {
    await server.clock.advance(60_000);
    shortestMs = Math.min(shortestMs, server.source.state().validForMs ?? 0);
  }
  expect(shortestMs).toBeGreaterThan(60_000);
});

test.each([
  ['states no lifetime', () => undefined],
  ['states one of its own', () => 60],
])('a server that always sends one token and then %s keeps its clients working', async (_name, repeats) => {
  const server = new RepeatingServer({ lifetimeMs: 60_000, repeats, lateMs: 1e12 });
  expect(await server.callFor(3_600_000, 500)).toEqual([]);
  expect(server.tokens).toBe(1);
  expect(server.requestedAt.length).toBeLessThan(90);
});

test('any server that repeats: no call fails, and requests are bounded', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        seconds: fc.constantFrom(3, 5, 10, 20, 45, 90, 200),
        statement: fc.constantFrom(...STATEMENTS),
        lateMs: fc.integer({ min: -1000, max: 1000 }),
        latencyMs: fc.integer({ min: 0, max: 400 }),
        intervalMs: fc.integer({ min: 100, max: 1500 }),
      }),
      async ({ seconds, statement: [, repeats], lateMs, latencyMs, intervalMs }) => {
        const server = new RepeatingServer({ lifetimeMs: seconds * 1000, repeats, lateMs, latencyMs });
        const faults = await server.callFor(3000 * seconds, intervalMs);
        // Of a shorter token less than a second is kept for the clock of the server.
        expect(faults.filter((fault) => seconds >= 20 || !fault.endsWith('has ended'))).toEqual([]);
        expect(server.requestedAt.length).toBeLessThanOrEqual(server.tokens * 6);
      },
    ),
    { numRuns: 60 },
  );
});
