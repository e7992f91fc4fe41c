import { describe, expect, test } from 'vitest';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { createRotatingTokenFetcher } from '../../../src/token/client/rotating-token-fetcher.ts';
import type { CredentialReadResult, VersionedCredentials } from '../../../src/token/client/rotating-token-fetcher.ts';
import type { DeclinableFetchResult, TokenNeed } from '../../../src/token/source/token-fetcher.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { REJECTED, REJECTED_DETAIL, UNAVAILABLE } from '../source/source-harness.ts';

const UNREADABLE: CredentialReadResult<VersionedCredentials> = {
  kind: 'unreadable',
  detail: 'auth.clientSecret: is empty',
};

/** Credentials in a file, and a server that knows some of them. */
class Setting {
  readonly clock = new ManualClock();
  readonly events: SidecarEvent[] = [];
  /** Versions in the order of the requests made with them. */
  readonly asked: string[] = [];
  news = 0;
  /** Undefined cannot be read. */
  file: string | undefined = 'old';
  known = ['old', 'new', 'newer'];
  outage: TokenRequestResult | undefined;
  /** Happens while a request is under way. */
  meanwhile: () => void = () => undefined;
  readonly supply = createRotatingTokenFetcher({
    credential: 'default',
    read: () => Promise.resolve(this.file === undefined ? UNREADABLE : { kind: 'ready', version: this.file }),
    request: ({ version }) => {
      this.asked.push(version);
      this.meanwhile();
      const grant: TokenRequestResult = { kind: 'ok', value: `of-${version}`, lifetimeMs: 3_600_000, scope: undefined };
      return Promise.resolve(this.outage ?? (this.known.includes(version) ? grant : REJECTED));
    },
    canChange: true,
    clock: this.clock,
    observe: (event) => this.events.push(event),
  });

  /** With the old credentials in use. */
  static async running(): Promise<Setting> {
    const setting = new Setting();
    await setting.fetch('first');
    setting.supply.watchCredentials(() => (setting.news += 1));
    return setting;
  }

  fetch(reason: TokenNeed['reason']): Promise<DeclinableFetchResult> {
    return this.supply.fetch({ reason, held: undefined }, new AbortController().signal);
  }

  told<K extends SidecarEvent['kind']>(kind: K): Extract<SidecarEvent, { kind: K }>[] {
    return this.events.filter((event): event is Extract<SidecarEvent, { kind: K }> => event.kind === kind);
  }
}

describe('new credentials', () => {
  test('are news within 2 s, and the token that they bring counts as a rotation', async () => {
    const setting = await Setting.running();
    await setting.clock.advance(60_000);
    expect(setting.news).toBe(0);
    setting.file = 'new';
    await setting.clock.advance(2_000);
    expect(setting.news).toBe(1);
    expect(await setting.fetch('rotated')).toMatchObject({ kind: 'ok', value: 'of-new' });
    expect(setting.told('token-invalidated')).toEqual([
      { kind: 'token-invalidated', credential: 'default', reason: 'rotated' },
    ]);
    expect(setting.told('credential-rotation')).toEqual([
      { kind: 'credential-rotation', credential: 'default', outcome: 'taken' },
    ]);
    await setting.clock.advance(60_000);
    expect(setting.news).toBe(1);
  });

  test('are tried by whatever asks first', async () => {
    const setting = await Setting.running();
    setting.file = 'new';
    expect(await setting.fetch('refresh')).toMatchObject({ value: 'of-new' });
    expect(setting.asked).toEqual(['old', 'new']);
    expect(setting.told('token-invalidated')).toHaveLength(1);
  });

  test('in an outage are no news that were refused: they are asked with again', async () => {
    const setting = await Setting.running();
    setting.file = 'new';
    setting.outage = UNAVAILABLE;
    expect(await setting.fetch('rotated')).toEqual(UNAVAILABLE);
    setting.outage = undefined;
    expect(await setting.fetch('refresh')).toMatchObject({ value: 'of-new' });
    expect(setting.asked).toEqual(['old', 'new', 'new']);
    expect(setting.supply.credentialFault()).toBeUndefined();
  });

  test('the first ones ever that are refused are simply refused, and changed ones are news', async () => {
    const setting = new Setting();
    setting.supply.watchCredentials(() => (setting.news += 1));
    setting.file = 'wrong';
    expect(await setting.fetch('first')).toEqual(REJECTED);
    await setting.clock.advance(10_000);
    expect(setting.news).toBe(0);
    expect(setting.supply.credentialFault()).toBeUndefined();
    setting.file = 'new';
    await setting.clock.advance(2_000);
    expect(setting.news).toBe(1);
    expect(await setting.fetch('first')).toMatchObject({ value: 'of-new' });
    expect(setting.told('token-invalidated')).toEqual([]);
  });

  test('while the held token was not asked for here, what is first seen is in use', async () => {
    const setting = new Setting();
    setting.supply.watchCredentials(() => (setting.news += 1));
    await setting.clock.advance(4_000);
    expect(setting.news).toBe(0);
    setting.file = 'new';
    await setting.clock.advance(2_000);
    expect(setting.news).toBe(1);
    setting.known = ['old'];
    expect(await setting.fetch('rotated')).toEqual({ kind: 'declined' });
    expect(await setting.fetch('refresh')).toMatchObject({ value: 'of-old' });
  });
});

describe('new credentials that are refused', () => {
  async function refused(): Promise<Setting> {
    const setting = await Setting.running();
    setting.file = 'wrong';
    await setting.clock.advance(2_000);
    expect(await setting.fetch('rotated')).toEqual({ kind: 'declined' });
    return setting;
  }

  test('change nothing, and are told of: as a request, as a failed rotation, as a fault', async () => {
    const setting = await refused();
    expect(setting.asked).toEqual(['old', 'wrong']);
    expect(setting.told('token-requested')).toEqual([
      { kind: 'token-requested', credential: 'default', outcome: 'rejected', durationMs: 0, detail: REJECTED_DETAIL },
    ]);
    expect(setting.told('credential-rotation')).toEqual([
      { kind: 'credential-rotation', credential: 'default', outcome: 'refused', detail: REJECTED_DETAIL },
    ]);
    expect(setting.supply.credentialFault()).toEqual({
      detail: `the new credentials were refused: ${REJECTED_DETAIL}`,
      wallAt: setting.clock.wallNow(),
    });
  });

  test('are left alone for a minute: renewals go on with the old ones', async () => {
    const setting = await refused();
    expect(await setting.fetch('refresh')).toMatchObject({ value: 'of-old' });
    expect(await setting.fetch('unauthorized')).toMatchObject({ value: 'of-old' });
    expect(setting.asked).toEqual(['old', 'wrong', 'old', 'old']);
  });

  test('are tried again after 1, 2, 4, 8, 15 and 15 minutes', async () => {
    const setting = await refused();
    const triedAt: number[] = [setting.clock.now()];
    for (let second = 0; second < 3_600 && triedAt.length < 7; second++) {
      const before = setting.news;
      await setting.clock.advance(1_000);
      if (setting.news === before) continue;
      expect(await setting.fetch('rotated')).toEqual({ kind: 'declined' });
      triedAt.push(setting.clock.now());
    }
    const restsMs = triedAt.slice(1).map((at, index) => at - (triedAt[index] ?? 0));
    expect(restsMs.map((ms) => Math.floor(ms / 60_000))).toEqual([1, 2, 4, 8, 15, 15]);
  });

  test('a renewal past that tries them, and falls back in the same breath', async () => {
    const setting = await refused();
    await setting.clock.advance(60_000);
    expect(await setting.fetch('refresh')).toMatchObject({ value: 'of-old' });
    expect(setting.asked).toEqual(['old', 'wrong', 'wrong', 'old']);
    expect(setting.told('token-invalidated')).toEqual([]);
  });

  test('become known to the server later: taken at the next try, and the fault is over', async () => {
    const setting = await refused();
    setting.known.push('wrong');
    await setting.clock.advance(62_000);
    expect(setting.news).toBeGreaterThan(1);
    expect(await setting.fetch('rotated')).toMatchObject({ value: 'of-wrong' });
    expect(setting.supply.credentialFault()).toBeUndefined();
  });

  test('give way to newer ones at once', async () => {
    const setting = await refused();
    setting.file = 'newer';
    const before = setting.news;
    await setting.clock.advance(2_000);
    expect(setting.news).toBe(before + 1);
    expect(await setting.fetch('rotated')).toMatchObject({ value: 'of-newer' });
    expect(setting.supply.credentialFault()).toBeUndefined();
  });

  test('taken back: the fault is over, and nothing is asked', async () => {
    const setting = await refused();
    setting.file = 'old';
    await setting.clock.advance(2_000);
    expect(setting.supply.credentialFault()).toBeUndefined();
    expect(setting.asked).toEqual(['old', 'wrong']);
  });

  test('and the old ones are refused as well by now: both are tried at every turn', async () => {
    const setting = await refused();
    setting.known = [];
    expect(await setting.fetch('refresh')).toEqual(REJECTED);
    const before = setting.news;
    await setting.clock.advance(50_000);
    expect(setting.news).toBe(before);
    setting.known = ['wrong'];
    expect(await setting.fetch('first')).toMatchObject({ value: 'of-wrong' });
  });
});

describe('files that change under a request', () => {
  test('what was refused is no longer what is there: it is followed at once, and no failed rotation', async () => {
    const setting = await Setting.running();
    // Two files that are read one after the other, while both are replaced.
    setting.file = 'half old, half new';
    setting.meanwhile = () => (setting.file = 'new');
    expect(await setting.fetch('rotated')).toMatchObject({ value: 'of-new' });
    expect(setting.told('credential-rotation').map(({ outcome }) => outcome)).toEqual(['taken']);
    expect(setting.told('token-requested')).toHaveLength(1);
  });

  test('over and over: it is followed a few times, and then left to the next turn', async () => {
    const setting = await Setting.running();
    let version = 0;
    setting.meanwhile = () => (setting.file = `wrong ${String(version++)}`);
    setting.file = 'wrong';
    expect(await setting.fetch('rotated')).toEqual({ kind: 'declined' });
    expect(setting.asked).toHaveLength(4);
  });
});

describe('files that cannot be read', () => {
  test('the last credentials stay in use, which is told once and shown as long as it lasts', async () => {
    const setting = await Setting.running();
    setting.file = undefined;
    await setting.clock.advance(10_000);
    expect(await setting.fetch('refresh')).toMatchObject({ value: 'of-old' });
    expect(setting.told('credential-rotation')).toEqual([
      {
        kind: 'credential-rotation',
        credential: 'default',
        outcome: 'unreadable',
        detail: 'auth.clientSecret: is empty',
      },
    ]);
    expect(setting.supply.credentialFault()).toMatchObject({ detail: 'auth.clientSecret: is empty' });
    expect(setting.news).toBe(0);
    setting.file = 'old';
    await setting.clock.advance(2_000);
    expect(setting.supply.credentialFault()).toBeUndefined();
  });

  test('from the beginning: no token, and they are news once they are there', async () => {
    const setting = new Setting();
    setting.supply.watchCredentials(() => (setting.news += 1));
    setting.file = undefined;
    expect(await setting.fetch('first')).toEqual({ kind: 'unavailable', detail: 'auth.clientSecret: is empty' });
    setting.file = 'old';
    await setting.clock.advance(2_000);
    expect(setting.news).toBe(1);
    expect(setting.told('credential-rotation')).toEqual([]);
  });
});

test('nobody looks at files any more once the watch is cancelled, or where there are none', async () => {
  const setting = new Setting();
  setting.supply.watchCredentials(() => (setting.news += 1))();
  expect(setting.clock.pendingTimers).toBe(0);
  const inPlace = createRotatingTokenFetcher({
    credential: 'default',
    read: () => Promise.resolve({ kind: 'ready', version: 'x' }),
    request: () => Promise.resolve(UNAVAILABLE),
    canChange: false,
    clock: setting.clock,
    observe: () => undefined,
  });
  inPlace.watchCredentials(() => (setting.news += 1));
  expect(setting.clock.pendingTimers).toBe(0);
});
