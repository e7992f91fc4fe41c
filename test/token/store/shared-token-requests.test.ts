/** Shared token requests in virtual time: leases, waits, dead replicas, and a store that is away or wrong. */
import { describe, expect, test } from 'vitest';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import type { ClaimResult, SharedTokenStore } from '../../../src/token/store/shared-token-store.ts';
import { FleetHarness, SECRET } from './fleet-harness.ts';
import { MemoryTokenStore } from './memory-token-store.ts';
import { refuse, watch } from '../source/source-harness.ts';

const HOUR_MS = 3_600_000;
const UNAVAILABLE: TokenRequestResult = { kind: 'unavailable', detail: 'auth.test answered 500' };
const REJECTED: TokenRequestResult = {
  kind: 'rejected',
  detail: 'auth.test answered 401 and the error "invalid_client"',
};
const signal = new AbortController().signal;

async function started(count: number): Promise<FleetHarness> {
  const fleet = new FleetHarness();
  fleet.add(count);
  await fleet.start();
  return fleet;
}

const same = (value: string, count: number): string[] => Array.from({ length: count }, () => value);

describe('a cold start', () => {
  test('of sixteen replicas sends one token request', async () => {
    const fleet = await started(16);
    expect(fleet.requests).toBe(1);
    expect(fleet.values()).toEqual(same('token-1', 16));
  });

  test('gives waiting replicas the token within 130 ms of the response', async () => {
    const fleet = new FleetHarness();
    fleet.add(16);
    fleet.latencyMs = 2000;
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(2000 + 130);
    expect(fleet.values()).toEqual(same('token-1', 16));
    expect(fleet.requests).toBe(1);
  });

  test('sends one request to a slow endpoint', async () => {
    const fleet = new FleetHarness();
    fleet.add(16);
    fleet.latencyMs = 9500;
    await fleet.start();
    expect(fleet.requests).toBe(1);
  });

  test('reports the request and the reused token as different events', async () => {
    const fleet = await started(3);
    const kinds = fleet.replicas.map(({ events }) => events.map((event) => event.kind));
    expect(kinds.toSorted()).toEqual([['token-found'], ['token-found'], ['token-requested']]);
    expect(fleet.replicas.map(({ requests }) => requests).toSorted()).toEqual([0, 0, 1]);
  });

  test('of a late replica reuses the token without a request', async () => {
    const fleet = await started(2);
    await fleet.clock.advance(HOUR_MS / 2);
    const [late] = fleet.add(1);
    late?.source.start();
    await fleet.clock.advance(1);
    expect(fleet.values()).toEqual(same('token-1', 3));
  });

  test('near the expiry of the shared token sends a request', async () => {
    const fleet = await started(1);
    fleet.replicas[0]?.source.stop();
    await fleet.clock.advance(HOUR_MS * 0.95);
    const [late] = fleet.add(1);
    late?.source.start();
    await fleet.clock.advance(1000);
    expect(late?.source.current()?.token.value).toBe('token-2');
  });
});

describe('refresh ahead of expiry', () => {
  test('sends about one request per lifetime, and no replica is ever without a token', async () => {
    const fleet = await started(16);
    let without = 0;
    for (let minute = 0; minute < 24 * 60; minute++) {
      await fleet.clock.advance(60_000);
      without += fleet.values().filter((value) => value === undefined).length;
    }
    expect(without).toBe(0);
    // The first of sixteen refreshes is due at about three quarters of each lifetime.
    expect(fleet.requests).toBeGreaterThanOrEqual(24);
    expect(fleet.requests).toBeLessThanOrEqual(33);
    expect(new Set(fleet.replicas.map(({ source }) => source.state().serial))).toEqual(new Set([fleet.requests]));
  });

  test('works for a lifetime of seconds', async () => {
    const fleet = new FleetHarness();
    fleet.lifetimeMs = 10_000;
    fleet.add(4);
    await fleet.start();
    let without = 0;
    for (let step = 0; step < 600; step++) {
      await fleet.clock.advance(500);
      without += fleet.values().filter((value) => value === undefined).length;
    }
    expect(without).toBe(0);
    expect(fleet.requests).toBeLessThanOrEqual(300 / 6.5);
  });
});

describe('a reused token', () => {
  test('expires no later than the original, though it is found late and the store is slow', async () => {
    const fleet = await started(1);
    const slow: SharedTokenStore = {
      whenReady: () => fleet.store.whenReady(),
      claim: async (name, request) => {
        const claim = await fleet.store.claim(name, request);
        await new Promise<void>((resolve) => fleet.clock.after(400, resolve));
        return claim;
      },
      publish: (name, token) => fleet.store.publish(name, token),
      publishFailure: (name, owner, sealed, holdMs) => fleet.store.publishFailure(name, owner, sealed, holdMs),
      releaseLease: (name, owner) => fleet.store.releaseLease(name, owner),
    };
    const end = fleet.requestedAt[0]! + HOUR_MS;
    for (const hours of [0, -1, 24]) {
      await fleet.clock.advance(HOUR_MS / 6);
      const [late] = fleet.add(1, { store: slow, wallOffsetMs: hours * HOUR_MS });
      late?.source.start();
      await fleet.clock.advance(500);
      expect(late?.source.current()?.token).toMatchObject({ value: 'token-1' });
      expect(late?.source.current()?.token.expiresAt).toBeLessThanOrEqual(end);
      expect(late?.source.current()?.token.expiresAt).toBeGreaterThan(end - 1000);
    }
  });

  test('is never older than the held one', async () => {
    const fleet = await started(1);
    fleet.replicas[0]?.source.stop();
    await fleet.clock.advance(120_000);
    fleet.store.isAway = true;
    const [alone] = fleet.add(1);
    alone?.source.start();
    await fleet.clock.advance(1000);
    fleet.store.isAway = false;
    // Its refresh is due while a tenth to a quarter of the older one's lifetime is left.
    await fleet.clock.advance(HOUR_MS * 0.87);
    expect(alone?.source.current()?.token.value).toBe('token-3');
    expect(alone?.events.map(({ kind }) => kind)).not.toContain('token-found');
  });
});

const CALL = { arrivedAt: 0 };

describe('a 401', () => {
  test('at all replicas at once sends one request, and each replays', async () => {
    const fleet = await started(4);
    const decisions = Promise.all(fleet.replicas.map(({ source }) => refuse(source, source.current(CALL)!, signal)));
    await fleet.clock.advance(1000);
    expect(await decisions).toEqual(Array(4).fill('replay'));
    expect(fleet.values()).toEqual(same('token-2', 4));
    expect(fleet.requests).toBe(2);
  });

  test('at one replica saves the others a request: they reuse its newer token', async () => {
    const fleet = await started(4);
    const [first, ...others] = fleet.replicas.map(({ source }) => source);
    const decision = watch(refuse(first!, first!.current(CALL)!, signal));
    await fleet.clock.advance(1000);
    expect(decision.value).toBe('replay');
    for (const source of others) {
      const late = watch(refuse(source, source.current(CALL)!, signal));
      await fleet.clock.advance(1);
      expect(late.value).toBe('replay');
    }
    expect(fleet.requests).toBe(2);
    expect(fleet.values()).toEqual(same('token-2', 4));
  });

  test('removes the refused token, so that a new replica does not get it', async () => {
    const fleet = await started(1);
    const [{ source }] = fleet.replicas as [(typeof fleet.replicas)[0]];
    fleet.respond = () => UNAVAILABLE;
    void refuse(source, source.current(CALL)!, signal);
    await fleet.clock.advance(1000);
    fleet.add(1)[0]?.source.start();
    await fleet.clock.advance(1000);
    expect(fleet.values()).toEqual(['token-1', undefined]);
  });
});

describe('the replica that sends the request', () => {
  test('is replaced by one other within 3 s of its death', async () => {
    const fleet = new FleetHarness();
    fleet.add(8);
    fleet.latencyMs = 5000;
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(2500);
    expect(fleet.requests).toBe(1);
    fleet.replicas.find(({ requests }) => requests === 1)?.die();
    await fleet.clock.advance(3500);
    expect(fleet.requests).toBe(2);
    await fleet.clock.advance(5300);
    expect(fleet.values().filter((value) => value === 'token-2')).toHaveLength(7);
    expect(fleet.requests).toBe(2);
  });

  test('releases its lease when it is stopped', async () => {
    const fleet = new FleetHarness();
    fleet.add(2);
    fleet.latencyMs = 5000;
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(1000);
    fleet.replicas.find(({ requests }) => requests === 1)?.source.stop();
    await fleet.clock.advance(320);
    expect(fleet.requests).toBe(2);
  });

  test('is not waited for longer than a request may take', async () => {
    const fleet = new FleetHarness();
    fleet.add(2);
    fleet.latencyMs = 60_000;
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(10_500);
    expect(fleet.replicas.map(({ requests }) => requests)).toEqual([1, 1]);
  });

  test('leaves no timer when all sources are stopped', async () => {
    const fleet = new FleetHarness();
    fleet.add(2);
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(50);
    for (const { source } of fleet.replicas) source.stop();
    await fleet.clock.advance(0);
    expect(fleet.clock.pendingTimers).toBe(0);
    expect(fleet.requests).toBe(1);
  });
});

describe('a store that is not available', () => {
  test('makes each replica send its own request', async () => {
    const fleet = new FleetHarness();
    fleet.store.isAway = true;
    fleet.add(16);
    await fleet.start();
    expect(fleet.requests).toBe(16);
    expect(fleet.replicas.every(({ requests }) => requests === 1)).toBe(true);
  });

  test('during a wait makes each replica send its own request at once', async () => {
    const fleet = new FleetHarness();
    fleet.latencyMs = 1000;
    fleet.add(16);
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(500);
    fleet.store.isAway = true;
    await fleet.clock.advance(320 + 1000);
    expect(fleet.values()).not.toContain(undefined);
    expect(fleet.replicas.map(({ requests }) => requests)).toEqual(Array.from({ length: 16 }, () => 1));
  });

  test('for a while leads back to one token at the next refresh', async () => {
    const fleet = new FleetHarness();
    fleet.store.isAway = true;
    fleet.add(4);
    await fleet.start();
    fleet.store.isAway = false;
    await fleet.clock.advance(HOUR_MS);
    expect(fleet.requests).toBe(5);
    expect(new Set(fleet.values())).toEqual(new Set(['token-5']));
  });

  test('and lost its records does not affect held tokens', async () => {
    const fleet = await started(4);
    fleet.store.forget();
    await fleet.clock.advance(HOUR_MS / 2);
    expect(fleet.requests).toBe(1);
    await fleet.clock.advance(HOUR_MS / 2);
    expect(fleet.requests).toBe(2);
  });
});

describe('a failing token endpoint', () => {
  test('gets requests of one replica at a time, as often as from one process, and all recover with it', async () => {
    const fleet = new FleetHarness();
    fleet.respond = () => UNAVAILABLE;
    fleet.add(16);
    for (const { source } of fleet.replicas) source.start();
    const wanted = (): void => {
      for (const { source } of fleet.replicas) source.waitForToken(signal).catch(() => undefined);
    };
    for (let second = 0; second < 600; second++) {
      wanted();
      await fleet.clock.advance(1000);
    }
    // A single process probes every 4 to 4.75 s while a caller waits.
    expect(fleet.requests).toBeLessThanOrEqual(600 / 4);
    const { respond: recovered } = new FleetHarness();
    fleet.respond = recovered;
    for (let second = 0; second < 6; second++) {
      wanted();
      await fleet.clock.advance(1000);
    }
    expect(fleet.values()).not.toContain(undefined);
    expect(new Set(fleet.values()).size).toBe(1);
  });

  test('shares its failure with the other replicas, which count no request', async () => {
    const fleet = new FleetHarness();
    fleet.respond = () => REJECTED;
    fleet.add(3);
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(1000);
    for (const { source } of fleet.replicas) {
      const refused = watch(source.waitForToken(signal));
      await fleet.clock.advance(0);
      expect(refused.error).toMatchObject({ code: 'TOKEN_REJECTED', message: `No access token: ${REJECTED.detail}` });
    }
    expect(fleet.requests).toBe(1);
    const kinds = fleet.replicas.map(({ events }) => events.map(({ kind }) => kind));
    expect(kinds.toSorted()).toEqual([['token-not-asked'], ['token-not-asked'], ['token-requested']]);
  });

  test.each([
    [1, true],
    [8, true],
    [8, false],
  ])('refuses %i replicas with a 401 without a reason as it would one (callers: %s)', async (count, hasCallers) => {
    const fleet = new FleetHarness();
    fleet.respond = () => ({ kind: 'rejected', isUnexplained: true, detail: 'auth.test answered 401' });
    fleet.add(count);
    for (const { source } of fleet.replicas) source.start();
    for (let second = 0; second < 590; second++) {
      if (hasCallers) for (const { source } of fleet.replicas) void source.waitForToken(signal).catch(() => undefined);
      await fleet.clock.advance(1000);
    }
    const gaps = fleet.requestedAt.slice(1).map((at, index) => at - (fleet.requestedAt[index] ?? 0));
    const [first = 0, ...others] = gaps;
    expect(first).toBeGreaterThanOrEqual(10_000);
    expect(first).toBeLessThan(13_000);
    expect(others.length).toBeGreaterThanOrEqual(8);
    for (const gap of others) {
      expect(gap).toBeGreaterThanOrEqual(60_000);
      expect(gap).toBeLessThan(63_000);
    }
  });

  test('gets no request before its Retry-After has passed', async () => {
    const fleet = new FleetHarness();
    fleet.respond = () => ({ ...UNAVAILABLE, retryAfterMs: 30_000 });
    fleet.add(8);
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(29_000);
    expect(fleet.requests).toBe(1);
  });
});

describe('a replica with a wrong configuration', () => {
  test('with another secret neither reads nor disturbs the others', async () => {
    const fleet = new FleetHarness();
    const [stranger] = fleet.add(1, { secret: 'a-secret-of-yesterday', respond: () => REJECTED });
    fleet.add(4);
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(1000);
    expect(fleet.values()).toEqual([undefined, ...same('token-2', 4)]);
    expect(stranger?.events).toEqual([expect.objectContaining({ kind: 'token-requested', outcome: 'rejected' })]);
  });

  test('with another client id has a token of its own', async () => {
    const fleet = new FleetHarness();
    fleet.add(2);
    fleet.add(2, { clientId: 'another-client' });
    await fleet.start();
    expect(fleet.requests).toBe(2);
    expect(new Set(fleet.values()).size).toBe(2);
  });

  test('that the endpoint refuses by its address reuses the tokens of the others', async () => {
    const fleet = new FleetHarness();
    const [blocked] = fleet.add(1, { respond: () => REJECTED });
    blocked?.source.start();
    await fleet.clock.advance(1000);
    const others = fleet.add(3);
    for (const { source } of others) source.start();
    // When the hold has ended, the replicas that wanted a token precede the one that failed.
    await fleet.clock.advance(125_000);
    expect(others.map(({ source }) => source.current()?.token)).not.toContain(undefined);
    let without = 0;
    for (let minute = 0; minute < 12 * 60; minute++) {
      await fleet.clock.advance(60_000);
      without += fleet.values().filter((value) => value === undefined).length;
    }
    expect(without).toBe(0);
  });
});

describe('a new secret', () => {
  test('is tried by one replica, and the others reuse its token', async () => {
    const fleet = await started(8);
    fleet.secret = 'the-secret-of-tomorrow';
    await fleet.clock.advance(5000);
    expect(fleet.requests).toBe(2);
    expect(fleet.values()).toEqual(same('token-2', 8));
    await fleet.clock.advance(60_000);
    expect(fleet.requests).toBe(2);
  });

  test('that is refused leaves all replicas with the held token, and the failure is shared', async () => {
    const fleet = await started(8);
    fleet.secret = 'a-secret-that-is-wrong';
    fleet.respond = () => REJECTED;
    await fleet.clock.advance(5000);
    expect(fleet.requests).toBe(2);
    expect(fleet.values()).toEqual(same('token-1', 8));
  });
});

describe('a stored record', () => {
  test('shows neither token nor secret nor client id', async () => {
    const fleet = await started(2);
    const dump = fleet.store.dump();
    for (const secret of ['token-1', SECRET, 'client-of-the-tests', 'auth.test'])
      for (const form of [secret, Buffer.from(secret).toString('base64'), Buffer.from(secret).toString('base64url')])
        expect(dump).not.toContain(form);
  });

  test('that cannot be read is ignored and replaced, with one warning', async () => {
    const fleet = await started(1);
    for (const sealed of ['nonsense', '', 'bst1.AAAA', 'bst2.AAAA', 'bst4.AAAA']) {
      fleet.store.corrupt(sealed);
      const [late] = fleet.add(1);
      late?.source.start();
      await fleet.clock.advance(1000);
      expect(late?.source.current()?.token.value).toBe(`token-${String(fleet.requests)}`);
      expect(late?.events.filter(({ kind }) => kind === 'warning')).toHaveLength(1);
    }
    expect(fleet.requests).toBe(6);
  });

  test('expires at the same time for all replicas, though their wall clocks differ', async () => {
    const fleet = new FleetHarness();
    for (const hours of [0, -1, 1, 24]) fleet.add(1, { wallOffsetMs: hours * HOUR_MS });
    await fleet.start();
    expect(fleet.requests).toBe(1);
    const ends = fleet.replicas.map(({ source }) => source.current()!.token.expiresAt);
    for (const end of ends) {
      expect(end).toBeLessThanOrEqual(Math.max(...ends));
      expect(end).toBeGreaterThan(Math.max(...ends) - 1500);
    }
  });
});

test('a store that returns only failures is obeyed for ten minutes', async () => {
  const fleet = new FleetHarness();
  fleet.add(1, { respond: () => REJECTED });
  fleet.replicas[0]?.source.start();
  await fleet.clock.advance(1000);
  const claimStore = fleet.store.claim.bind(fleet.store);
  const [late] = fleet.add(1);
  // The first failure is returned for ever.
  fleet.store.claim = async (name, request) => {
    const claim = await claimStore(name, { ...request, owner: 'another replica' });
    return claim?.kind === 'failed' ? (stale = { ...claim, leftMs: 60_000 }) : stale;
  };
  let stale: ClaimResult | undefined;
  late?.source.start();
  await fleet.clock.advance(590_000);
  expect(late?.requests).toBe(0);
  await fleet.clock.advance(70_000);
  expect(late?.requests).toBe(1);
  expect(late?.source.current()?.token.value).toBe('token-2');
});

test('a store whose replies are late costs a few claims, then the replica sends its own request', async () => {
  const fleet = new FleetHarness();
  const store = new MemoryTokenStore(fleet.clock);
  store.claim = () => Promise.resolve(undefined);
  fleet.add(1, { store });
  await fleet.start();
  expect(fleet.requests).toBe(1);
});
