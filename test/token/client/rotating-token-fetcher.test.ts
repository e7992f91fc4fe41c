import { describe, expect, test } from 'vitest';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { RotatingTokenFetcher } from '../../../src/token/client/rotating-token-fetcher.ts';
import type { Unreadable } from '../../../src/token/client/secret-file.ts';
import type { DeclinableFetchResult, TokenNeed } from '../../../src/token/source/token-fetcher.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { credentialOf } from './credential.ts';
import { REJECTED, REJECTED_DETAIL, UNAVAILABLE } from '../source/source-harness.ts';

const UNREADABLE: Unreadable = { kind: 'unreadable', detail: 'auth.clientSecret: is empty' };

/** Credentials in a file, and a server that accepts some of them. */
class Scenario {
  readonly clock = new ManualClock();
  readonly events: SidecarEvent[] = [];
  /** Versions in the order of the requests made with them. */
  readonly requested: string[] = [];
  changes = 0;
  /** Undefined = unreadable. */
  file: string | undefined = 'old';
  accepted = ['old', 'new', 'newer'];
  outage: TokenRequestResult | undefined;
  /** Called during each request. */
  duringRequest: () => void = () => undefined;
  readonly fetcher = new RotatingTokenFetcher({
    credential: 'default',
    read: () => Promise.resolve(this.file === undefined ? UNREADABLE : credentialOf(this.file)),
    request: ({ version }) => {
      this.requested.push(version);
      this.duringRequest();
      const grant: TokenRequestResult = { kind: 'ok', value: `of-${version}`, lifetimeMs: 3_600_000, scope: undefined };
      return Promise.resolve(this.outage ?? (this.accepted.includes(version) ? grant : REJECTED));
    },
    clock: this.clock,
    observe: (event) => this.events.push(event),
  });

  /** The old credentials are in use. */
  static async running(): Promise<Scenario> {
    const scenario = new Scenario();
    await scenario.fetch('first');
    scenario.fetcher.watch(() => (scenario.changes += 1));
    return scenario;
  }

  fetch(reason: TokenNeed['reason']): Promise<DeclinableFetchResult> {
    return this.fetcher.fetch({ reason, held: undefined }, new AbortController().signal);
  }

  eventsOf<K extends SidecarEvent['kind']>(kind: K): Extract<SidecarEvent, { kind: K }>[] {
    return this.events.filter((event): event is Extract<SidecarEvent, { kind: K }> => event.kind === kind);
  }
}

describe('new credentials', () => {
  test('are seen within 2 s, and their token counts as a rotation', async () => {
    const scenario = await Scenario.running();
    await scenario.clock.advance(60_000);
    expect(scenario.changes).toBe(0);
    scenario.file = 'new';
    await scenario.clock.advance(2_000);
    expect(scenario.changes).toBe(1);
    expect(await scenario.fetch('rotated')).toMatchObject({ kind: 'ok', value: 'of-new', isUsedAtOnce: true });
    expect(await scenario.fetch('refresh')).toMatchObject({ value: 'of-new', isUsedAtOnce: false });
    expect(scenario.eventsOf('token-invalidated')).toEqual([
      { kind: 'token-invalidated', credential: 'default', reason: 'rotated' },
    ]);
    expect(scenario.eventsOf('credential-rotation')).toEqual([
      { kind: 'credential-rotation', credential: 'default', outcome: 'taken' },
    ]);
    await scenario.clock.advance(60_000);
    expect(scenario.changes).toBe(1);
  });

  test('are tried by the next fetch of any reason', async () => {
    const scenario = await Scenario.running();
    scenario.file = 'new';
    expect(await scenario.fetch('refresh')).toMatchObject({ value: 'of-new', isUsedAtOnce: true });
    expect(scenario.requested).toEqual(['old', 'new']);
    expect(scenario.eventsOf('token-invalidated')).toHaveLength(1);
  });

  test('that met an outage do not count as refused, and are tried again', async () => {
    const scenario = await Scenario.running();
    scenario.file = 'new';
    scenario.outage = UNAVAILABLE;
    expect(await scenario.fetch('rotated')).toEqual(UNAVAILABLE);
    scenario.outage = undefined;
    expect(await scenario.fetch('refresh')).toMatchObject({ value: 'of-new' });
    expect(scenario.requested).toEqual(['old', 'new', 'new']);
    expect(scenario.fetcher.fault()).toBeUndefined();
  });

  test.each<TokenRequestResult>([
    { kind: 'malformed', detail: '200 with HTML' },
    { kind: 'unavailable', detail: '429', isLasting: true },
  ])('that got $detail are not seen as a change again, and newer ones are', async (outage) => {
    const scenario = await Scenario.running();
    scenario.file = 'new';
    scenario.outage = outage;
    await scenario.clock.advance(2_000);
    await scenario.fetch('rotated');
    await scenario.clock.advance(120_000);
    expect(scenario.changes).toBe(1);
    scenario.file = 'newer';
    await scenario.clock.advance(2_000);
    expect(scenario.changes).toBe(2);
    scenario.outage = undefined;
    expect(await scenario.fetch('refresh')).toMatchObject({ value: 'of-newer' });
  });

  test('after rejected first credentials are seen as a change', async () => {
    const scenario = new Scenario();
    scenario.fetcher.watch(() => (scenario.changes += 1));
    scenario.file = 'wrong';
    expect(await scenario.fetch('first')).toEqual(REJECTED);
    await scenario.clock.advance(10_000);
    expect(scenario.changes).toBe(0);
    expect(scenario.fetcher.fault()).toBeUndefined();
    scenario.file = 'new';
    await scenario.clock.advance(2_000);
    expect(scenario.changes).toBe(1);
    expect(await scenario.fetch('first')).toMatchObject({ value: 'of-new' });
    expect(scenario.eventsOf('token-invalidated')).toEqual([]);
  });

  test('are recognized though the held token was not requested here: the first ones seen count as accepted', async () => {
    const scenario = new Scenario();
    scenario.fetcher.watch(() => (scenario.changes += 1));
    await scenario.clock.advance(4_000);
    expect(scenario.changes).toBe(0);
    scenario.file = 'new';
    await scenario.clock.advance(2_000);
    expect(scenario.changes).toBe(1);
    scenario.accepted = ['old'];
    expect(await scenario.fetch('rotated')).toEqual({ kind: 'declined' });
    expect(await scenario.fetch('refresh')).toMatchObject({ value: 'of-old' });
  });
});

describe('new credentials that are refused', () => {
  async function refused(): Promise<Scenario> {
    const scenario = await Scenario.running();
    scenario.file = 'wrong';
    await scenario.clock.advance(2_000);
    expect(await scenario.fetch('rotated')).toEqual({ kind: 'declined' });
    return scenario;
  }

  test('change nothing, and are reported as a request, a failed rotation and a fault', async () => {
    const scenario = await refused();
    expect(scenario.requested).toEqual(['old', 'wrong']);
    expect(scenario.eventsOf('token-requested')).toEqual([
      { kind: 'token-requested', credential: 'default', outcome: 'rejected', durationMs: 0, detail: REJECTED_DETAIL },
    ]);
    expect(scenario.eventsOf('credential-rotation')).toEqual([
      { kind: 'credential-rotation', credential: 'default', outcome: 'refused', detail: REJECTED_DETAIL },
    ]);
    expect(scenario.fetcher.fault()).toEqual({
      detail: `the new credentials were refused: ${REJECTED_DETAIL}`,
      wallAt: scenario.clock.wallNow(),
    });
  });

  test('are not tried for a minute, in which refreshes use the old ones', async () => {
    const scenario = await refused();
    expect(await scenario.fetch('refresh')).toMatchObject({ value: 'of-old' });
    expect(await scenario.fetch('unauthorized')).toMatchObject({ value: 'of-old' });
    expect(scenario.requested).toEqual(['old', 'wrong', 'old', 'old']);
  });

  test('are tried again after 1, 2, 4, 8, 15 and 15 minutes', async () => {
    const scenario = await refused();
    const triedAt: number[] = [scenario.clock.now()];
    for (let second = 0; second < 3_600 && triedAt.length < 7; second++) {
      const before = scenario.changes;
      await scenario.clock.advance(1_000);
      if (scenario.changes === before) continue;
      expect(await scenario.fetch('rotated')).toEqual({ kind: 'declined' });
      triedAt.push(scenario.clock.now());
    }
    const delaysMs = triedAt.slice(1).map((at, index) => at - (triedAt[index] ?? 0));
    expect(delaysMs.map((ms) => Math.floor(ms / 60_000))).toEqual([1, 2, 4, 8, 15, 15]);
  });

  test('are tried by a refresh after that, which falls back to the old ones at once', async () => {
    const scenario = await refused();
    await scenario.clock.advance(60_000);
    expect(await scenario.fetch('refresh')).toMatchObject({ value: 'of-old' });
    expect(scenario.requested).toEqual(['old', 'wrong', 'wrong', 'old']);
    expect(scenario.eventsOf('token-invalidated')).toEqual([]);
  });

  test('are in use after the server has accepted them at a later try', async () => {
    const scenario = await refused();
    scenario.accepted.push('wrong');
    await scenario.clock.advance(62_000);
    expect(scenario.changes).toBeGreaterThan(1);
    expect(await scenario.fetch('rotated')).toMatchObject({ value: 'of-wrong' });
    expect(scenario.fetcher.fault()).toBeUndefined();
  });

  test('are replaced by newer ones at once', async () => {
    const scenario = await refused();
    scenario.file = 'newer';
    const before = scenario.changes;
    await scenario.clock.advance(2_000);
    expect(scenario.changes).toBe(before + 1);
    expect(await scenario.fetch('rotated')).toMatchObject({ value: 'of-newer' });
    expect(scenario.fetcher.fault()).toBeUndefined();
  });

  test('cause no request and no fault after the change was reverted', async () => {
    const scenario = await refused();
    scenario.file = 'old';
    await scenario.clock.advance(2_000);
    expect(scenario.fetcher.fault()).toBeUndefined();
    expect(scenario.requested).toEqual(['old', 'wrong']);
  });

  test('are tried in every fetch once the old ones are refused too', async () => {
    const scenario = await refused();
    scenario.accepted = [];
    expect(await scenario.fetch('refresh')).toEqual(REJECTED);
    const before = scenario.changes;
    await scenario.clock.advance(50_000);
    expect(scenario.changes).toBe(before);
    scenario.accepted = ['wrong'];
    expect(await scenario.fetch('first')).toMatchObject({ value: 'of-wrong' });
  });
});

describe('files that change during a request', () => {
  test('cause another request at once instead of a failed rotation', async () => {
    const scenario = await Scenario.running();
    // As when two files are replaced while they are read.
    scenario.file = 'half old, half new';
    scenario.duringRequest = () => (scenario.file = 'new');
    expect(await scenario.fetch('rotated')).toMatchObject({ value: 'of-new' });
    expect(scenario.eventsOf('credential-rotation').map(({ outcome }) => outcome)).toEqual(['taken']);
    expect(scenario.eventsOf('token-requested')).toHaveLength(1);
  });

  test('again and again cause at most three requests in one fetch', async () => {
    const scenario = await Scenario.running();
    let version = 0;
    scenario.duringRequest = () => (scenario.file = `wrong ${String(version++)}`);
    scenario.file = 'wrong';
    expect(await scenario.fetch('rotated')).toEqual({ kind: 'declined' });
    expect(scenario.requested).toHaveLength(4);
  });
});

describe('files that cannot be read', () => {
  test('leave the last credentials in use, with one event and a fault until they can be read', async () => {
    const scenario = await Scenario.running();
    scenario.file = undefined;
    await scenario.clock.advance(10_000);
    expect(await scenario.fetch('refresh')).toMatchObject({ value: 'of-old' });
    expect(scenario.eventsOf('credential-rotation')).toEqual([
      {
        kind: 'credential-rotation',
        credential: 'default',
        outcome: 'unreadable',
        detail: 'auth.clientSecret: is empty',
      },
    ]);
    expect(scenario.fetcher.fault()).toMatchObject({ detail: 'auth.clientSecret: is empty' });
    expect(scenario.changes).toBe(0);
    scenario.file = 'old';
    await scenario.clock.advance(2_000);
    expect(scenario.fetcher.fault()).toBeUndefined();
  });

  test('at the start give no token, and count as a change once they can be read', async () => {
    const scenario = new Scenario();
    scenario.fetcher.watch(() => (scenario.changes += 1));
    scenario.file = undefined;
    expect(await scenario.fetch('first')).toEqual({
      kind: 'unavailable',
      detail: 'auth.clientSecret: is empty',
      isUnsent: true,
    });
    scenario.file = 'old';
    await scenario.clock.advance(2_000);
    expect(scenario.changes).toBe(1);
    expect(scenario.eventsOf('credential-rotation')).toEqual([]);
  });
});

test('no file is read after the watch is cancelled', async () => {
  const scenario = new Scenario();
  scenario.fetcher.watch(() => (scenario.changes += 1))();
  expect(scenario.clock.pendingTimers).toBe(0);
});
