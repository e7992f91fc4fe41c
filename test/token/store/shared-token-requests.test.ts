/** One token for a fleet: who asks, who waits, and what happens when somebody dies, lies, or is alone. In virtual time. */
import { describe, expect, test } from 'vitest';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import type { ClaimResult, SharedTokenStore } from '../../../src/token/store/shared-token-store.ts';
import { FleetHarness, SECRET } from './fleet-harness.ts';
import { MemoryBoard } from './memory-board.ts';
import { watch } from '../source/source-harness.ts';

const HOUR_MS = 3_600_000;
const UNAVAILABLE: TokenRequestResult = { kind: 'unavailable', detail: 'auth.test answered 500' };
const REJECTED: TokenRequestResult = {
  kind: 'rejected',
  detail: 'auth.test answered 401 and the error "invalid_client"',
};
const patient = new AbortController().signal;

async function started(count: number): Promise<FleetHarness> {
  const fleet = new FleetHarness();
  fleet.add(count);
  await fleet.start();
  return fleet;
}

const same = (value: string, count: number): string[] => Array.from({ length: count }, () => value);

describe('a cold start', () => {
  test('of sixteen replicas is one token request', async () => {
    const fleet = await started(16);
    expect(fleet.requests).toBe(1);
    expect(fleet.values()).toEqual(same('token-1', 16));
  });

  test('keeps those who wait no longer than an eighth of a second past the answer', async () => {
    const fleet = new FleetHarness();
    fleet.add(16);
    fleet.latencyMs = 2000;
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(2000 + 130);
    expect(fleet.values()).toEqual(same('token-1', 16));
    expect(fleet.requests).toBe(1);
  });

  test('waits for a slow endpoint together, however long it may take', async () => {
    const fleet = new FleetHarness();
    fleet.add(16);
    fleet.latencyMs = 9500;
    await fleet.start();
    expect(fleet.requests).toBe(1);
  });

  test('tells a request from what was taken over', async () => {
    const fleet = await started(3);
    const kinds = fleet.replicas.map(({ events }) => events.map((event) => event.kind));
    expect(kinds.toSorted()).toEqual([['token-found'], ['token-found'], ['token-requested']]);
    expect(fleet.replicas.map(({ requests }) => requests).toSorted()).toEqual([0, 0, 1]);
  });

  test('later than the others is none at all', async () => {
    const fleet = await started(2);
    await fleet.clock.advance(HOUR_MS / 2);
    const [late] = fleet.add(1);
    late?.source.start();
    await fleet.clock.advance(1);
    expect(fleet.values()).toEqual(same('token-1', 3));
  });

  test('near the end of the posted token asks for its own', async () => {
    const fleet = await started(1);
    fleet.replicas[0]?.source.stop();
    await fleet.clock.advance(HOUR_MS * 0.95);
    const [late] = fleet.add(1);
    late?.source.start();
    await fleet.clock.advance(1000);
    expect(late?.source.current()?.value).toBe('token-2');
  });
});

describe('refreshing ahead of the end', () => {
  test('is one request for each life, and nobody is ever without a token', async () => {
    const fleet = await started(16);
    let without = 0;
    for (let minute = 0; minute < 24 * 60; minute++) {
      await fleet.clock.advance(60_000);
      without += fleet.values().filter((value) => value === undefined).length;
    }
    expect(without).toBe(0);
    // The first of sixteen is due at about three quarters of each life.
    expect(fleet.requests).toBeGreaterThanOrEqual(24);
    expect(fleet.requests).toBeLessThanOrEqual(33);
    expect(new Set(fleet.replicas.map(({ source }) => source.state().serial))).toEqual(new Set([fleet.requests]));
  });

  test('works for a life of seconds', async () => {
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
    expect(fleet.requests).toBeLessThanOrEqual(300 / 7);
  });
});

describe('what is taken over', () => {
  test('ends with the token, never later, however late it is found and however slowly the board answers', async () => {
    const fleet = await started(1);
    const slow: SharedTokenStore = {
      whenReady: () => fleet.board.whenReady(),
      claim: async (name, request) => {
        const claim = await fleet.board.claim(name, request);
        await new Promise<void>((resolve) => fleet.clock.after(400, resolve));
        return claim;
      },
      publish: (name, posting) => fleet.board.publish(name, posting),
      publishFailure: (name, owner, sealed, holdMs) => fleet.board.publishFailure(name, owner, sealed, holdMs),
      releaseLease: (name, owner) => fleet.board.releaseLease(name, owner),
      discardUnreadable: (name, sealed) => fleet.board.discardUnreadable(name, sealed),
    };
    const end = fleet.requestedAt[0]! + HOUR_MS;
    for (const hours of [0, -1, 24]) {
      await fleet.clock.advance(HOUR_MS / 6);
      const [late] = fleet.add(1, { board: slow, wallOffsetMs: hours * HOUR_MS });
      late?.source.start();
      await fleet.clock.advance(500);
      expect(late?.source.current()).toMatchObject({ value: 'token-1' });
      expect(late?.source.current()?.expiresAt).toBeLessThanOrEqual(end);
      expect(late?.source.current()?.expiresAt).toBeGreaterThan(end - 1000);
    }
  });

  test('is no older token than the one that nears its end', async () => {
    const fleet = await started(1);
    fleet.replicas[0]?.source.stop();
    await fleet.clock.advance(120_000);
    fleet.board.isAway = true;
    const [alone] = fleet.add(1);
    alone?.source.start();
    await fleet.clock.advance(1000);
    fleet.board.isAway = false;
    // Its refresh is due while a tenth to a quarter of the older one's life is left.
    await fleet.clock.advance(HOUR_MS * 0.87);
    expect(alone?.source.current()?.value).toBe('token-3');
    expect(alone?.events.map(({ kind }) => kind)).not.toContain('token-found');
  });
});

describe('a 401', () => {
  test('for all replicas at once is one request, and each replays', async () => {
    const fleet = await started(4);
    const verdicts = Promise.all(
      fleet.replicas.map(({ source }) => source.handleUnauthorized(source.current()!, patient)),
    );
    await fleet.clock.advance(1000);
    expect(await verdicts).toEqual(Array.from({ length: 4 }, () => ({ kind: 'replay' })));
    expect(fleet.values()).toEqual(same('token-2', 4));
    expect(fleet.requests).toBe(2);
  });

  test('at one is no request at the others, which take the newer token when they meet theirs', async () => {
    const fleet = await started(4);
    const [first, ...others] = fleet.replicas.map(({ source }) => source);
    const refused = first!.current()!;
    const verdict = watch(first!.handleUnauthorized(refused, patient));
    await fleet.clock.advance(1000);
    expect(verdict.value).toEqual({ kind: 'replay' });
    for (const source of others) {
      const late = watch(source.handleUnauthorized(source.current()!, patient));
      await fleet.clock.advance(1);
      expect(late.value).toEqual({ kind: 'replay' });
    }
    expect(fleet.requests).toBe(2);
    expect(fleet.values()).toEqual(same('token-2', 4));
  });

  test('keeps a refused token from those who start then', async () => {
    const fleet = await started(1);
    const [{ source }] = fleet.replicas as [(typeof fleet.replicas)[0]];
    fleet.answer = () => UNAVAILABLE;
    void source.handleUnauthorized(source.current()!, patient);
    await fleet.clock.advance(1000);
    fleet.add(1)[0]?.source.start();
    await fleet.clock.advance(1000);
    expect(fleet.values()).toEqual(['token-1', undefined]);
  });
});

describe('whoever asks', () => {
  test('and dies is followed by one other within three seconds', async () => {
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

  test('and is stopped gives way at once', async () => {
    const fleet = new FleetHarness();
    fleet.add(2);
    fleet.latencyMs = 5000;
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(1000);
    fleet.replicas.find(({ requests }) => requests === 1)?.source.stop();
    await fleet.clock.advance(320);
    expect(fleet.requests).toBe(2);
  });

  test('for too long is not waited for', async () => {
    const fleet = new FleetHarness();
    fleet.add(2);
    fleet.latencyMs = 60_000;
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(10_500);
    expect(fleet.replicas.map(({ requests }) => requests)).toEqual([1, 1]);
  });

  test('waits in vain ends with its source', async () => {
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

describe('without the board', () => {
  test('each replica asks for itself', async () => {
    const fleet = new FleetHarness();
    fleet.board.isAway = true;
    fleet.add(16);
    await fleet.start();
    expect(fleet.requests).toBe(16);
    expect(fleet.replicas.every(({ requests }) => requests === 1)).toBe(true);
  });

  test('from the middle of a wait on, each asks at once', async () => {
    const fleet = new FleetHarness();
    fleet.latencyMs = 1000;
    fleet.add(16);
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(500);
    fleet.board.isAway = true;
    await fleet.clock.advance(320 + 1000);
    expect(fleet.values()).not.toContain(undefined);
    expect(fleet.replicas.map(({ requests }) => requests)).toEqual(Array.from({ length: 16 }, () => 1));
  });

  test('for a while, the fleet has one token again with the next refresh', async () => {
    const fleet = new FleetHarness();
    fleet.board.isAway = true;
    fleet.add(4);
    await fleet.start();
    fleet.board.isAway = false;
    await fleet.clock.advance(HOUR_MS);
    expect(fleet.requests).toBe(5);
    expect(new Set(fleet.values())).toEqual(new Set(['token-5']));
  });

  test('when it forgot everything, held tokens are used on', async () => {
    const fleet = await started(4);
    fleet.board.forget();
    await fleet.clock.advance(HOUR_MS / 2);
    expect(fleet.requests).toBe(1);
    await fleet.clock.advance(HOUR_MS / 2);
    expect(fleet.requests).toBe(2);
  });
});

describe('a token endpoint that fails', () => {
  test('is asked by one replica at a time, as often as a single process would, and all recover with it', async () => {
    const fleet = new FleetHarness();
    fleet.answer = () => UNAVAILABLE;
    fleet.add(16);
    for (const { source } of fleet.replicas) source.start();
    const wanted = (): void => {
      for (const { source } of fleet.replicas) source.waitForToken(patient).catch(() => undefined);
    };
    for (let second = 0; second < 600; second++) {
      wanted();
      await fleet.clock.advance(1000);
    }
    // One process alone probes every 4 to 4.75 s while somebody waits.
    expect(fleet.requests).toBeLessThanOrEqual(600 / 4);
    const { answer: recovered } = new FleetHarness();
    fleet.answer = recovered;
    for (let second = 0; second < 6; second++) {
      wanted();
      await fleet.clock.advance(1000);
    }
    expect(fleet.values()).not.toContain(undefined);
    expect(new Set(fleet.values()).size).toBe(1);
  });

  test('tells the reason to those who did not ask, and counts no request of theirs', async () => {
    const fleet = new FleetHarness();
    fleet.answer = () => REJECTED;
    fleet.add(3);
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(1000);
    for (const { source } of fleet.replicas) {
      const refused = watch(source.waitForToken(patient));
      await fleet.clock.advance(0);
      expect(refused.error).toMatchObject({ code: 'TOKEN_REJECTED', message: `No access token: ${REJECTED.detail}` });
    }
    expect(fleet.requests).toBe(1);
    const kinds = fleet.replicas.map(({ events }) => events.map(({ kind }) => kind));
    expect(kinds.toSorted()).toEqual([['token-not-asked'], ['token-not-asked'], ['token-requested']]);
  });

  test('is not asked again before the time that it named', async () => {
    const fleet = new FleetHarness();
    fleet.answer = () => ({ ...UNAVAILABLE, retryAfterMs: 30_000 });
    fleet.add(8);
    for (const { source } of fleet.replicas) source.start();
    await fleet.clock.advance(29_000);
    expect(fleet.requests).toBe(1);
  });
});

describe('a replica that is set up wrongly', () => {
  test('with another secret neither reads nor disturbs the others', async () => {
    const fleet = new FleetHarness();
    const [stranger] = fleet.add(1, { secret: 'a-secret-of-yesterday', answer: () => REJECTED });
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

  test('where the network alone refuses it, it lives on the tokens of the others, and costs them none', async () => {
    const fleet = new FleetHarness();
    const [blocked] = fleet.add(1, { answer: () => REJECTED });
    blocked?.source.start();
    await fleet.clock.advance(1000);
    const others = fleet.add(3);
    for (const { source } of others) source.start();
    // Once its time has passed, those who wanted a token have a turn before the one who failed.
    await fleet.clock.advance(125_000);
    expect(others.map(({ source }) => source.current())).not.toContain(undefined);
    let without = 0;
    for (let minute = 0; minute < 12 * 60; minute++) {
      await fleet.clock.advance(60_000);
      without += fleet.values().filter((value) => value === undefined).length;
    }
    expect(without).toBe(0);
  });
});

describe('a new secret', () => {
  test('is tried by one replica, and the others have its token from it', async () => {
    const fleet = await started(8);
    fleet.secret = 'the-secret-of-tomorrow';
    await fleet.clock.advance(5000);
    expect(fleet.requests).toBe(2);
    expect(fleet.values()).toEqual(same('token-2', 8));
    await fleet.clock.advance(60_000);
    expect(fleet.requests).toBe(2);
  });

  test('that is refused leaves all with the token that they have, and the refusal is shared', async () => {
    const fleet = await started(8);
    fleet.secret = 'a-secret-that-is-wrong';
    fleet.answer = () => REJECTED;
    await fleet.clock.advance(5000);
    expect(fleet.requests).toBe(2);
    expect(fleet.values()).toEqual(same('token-1', 8));
  });
});

describe('what is on the board', () => {
  test('shows neither token nor secret nor client', async () => {
    const fleet = await started(2);
    const seen = fleet.board.dump();
    for (const secret of ['token-1', SECRET, 'client-of-the-tests', 'auth.test'])
      for (const form of [secret, Buffer.from(secret).toString('base64'), Buffer.from(secret).toString('base64url')])
        expect(seen).not.toContain(form);
  });

  test('and cannot be read is ignored, replaced and told of once', async () => {
    const fleet = await started(1);
    for (const sealed of ['nonsense', '', 'bst1.AAAA']) {
      fleet.board.spoil(sealed);
      const [late] = fleet.add(1);
      late?.source.start();
      await fleet.clock.advance(1000);
      expect(late?.source.current()?.value).toBe(`token-${String(fleet.requests)}`);
      expect(late?.events.filter(({ kind }) => kind === 'warning')).toHaveLength(1);
    }
    expect(fleet.requests).toBe(4);
  });

  test('lives as long as the token for every replica, whatever their wall clocks say', async () => {
    const fleet = new FleetHarness();
    for (const hours of [0, -1, 1, 24]) fleet.add(1, { wallOffsetMs: hours * HOUR_MS });
    await fleet.start();
    expect(fleet.requests).toBe(1);
    const ends = fleet.replicas.map(({ source }) => source.current()!.expiresAt);
    for (const end of ends) {
      expect(end).toBeLessThanOrEqual(Math.max(...ends));
      expect(end).toBeGreaterThan(Math.max(...ends) - 1500);
    }
  });
});

test('a board that speaks of failures alone is believed for ten minutes', async () => {
  const fleet = new FleetHarness();
  fleet.add(1, { answer: () => REJECTED });
  fleet.replicas[0]?.source.start();
  await fleet.clock.advance(1000);
  const told = fleet.board.claim.bind(fleet.board);
  const [late] = fleet.add(1);
  // What was true once is held up for ever.
  fleet.board.claim = async (name, request) => {
    const claim = await told(name, { ...request, owner: 'somebody else' });
    return claim?.kind === 'failed' ? (lie = { ...claim, leftMs: 60_000 }) : lie;
  };
  let lie: ClaimResult | undefined;
  late?.source.start();
  await fleet.clock.advance(590_000);
  expect(late?.requests).toBe(0);
  await fleet.clock.advance(70_000);
  expect(late?.requests).toBe(1);
  expect(late?.source.current()?.value).toBe('token-2');
});

test('a board that answers late costs a few claims, then the replica asks for itself', async () => {
  const fleet = new FleetHarness();
  const board = new MemoryBoard(fleet.clock);
  board.claim = () => Promise.resolve(undefined);
  fleet.add(1, { board });
  await fleet.start();
  expect(fleet.requests).toBe(1);
});
