/** The latest notable events: every kind in words, what repeats counted, the list bounded. */
import { describe, expect, it } from 'vitest';
import { describeEvent } from '../../../src/admin/history/event-descriptions.ts';
import { EventLog } from '../../../src/admin/history/event-log.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';

const lost = (detail: string): SidecarEvent => ({ kind: 'fleet-lost', detail });
const credential = 'default';
const refusal = { kind: 'rate-limited', route: 'default', status: 429, fields: {} } as const;

function start() {
  let wallAt = 1000;
  const happenings = new EventLog(() => wallAt);
  const tell = (event: SidecarEvent, afterMs = 0): void => {
    wallAt += afterMs;
    happenings.observe(event);
  };
  return { tell, list: () => happenings.read().map(({ text, count }) => [text, count]), happenings };
}

describe('the list', () => {
  it('is newest first, and bounded', () => {
    const { tell, list } = start();
    for (let count = 0; count < 100; count++) tell(lost(String(count)));
    expect(list()).toHaveLength(40);
    expect(list()[0]).toEqual(['Alone, without the fleet: 99', 1]);
  });

  it('counts what happens again within a minute, with the instant of the last', () => {
    const { tell, list, happenings } = start();
    tell(lost('a'));
    tell(lost('b'), 10);
    tell(lost('a'), 10);
    expect(list()).toEqual([
      ['Alone, without the fleet: a', 2],
      ['Alone, without the fleet: b', 1],
    ]);
    expect(happenings.read()[0]).toMatchObject({ lastWallAt: 1020 });
    tell(lost('a'), 60_001);
    expect(list().map(([, count]) => count)).toEqual([1, 2, 1]);
  });

  it('takes refusals of one route for the same, whatever they say of the wait, and shows the newest', () => {
    const { tell, list } = start();
    for (const pauseMs of [3000, 2000, 0]) tell({ ...refusal, pauseMs, stated: true });
    tell({ ...refusal, pauseMs: 400, stated: false });
    tell({ ...refusal, route: 'quotes', pauseMs: 12_000, stated: true });
    expect(list()).toEqual([
      ['The upstream of quotes refused a call for its rate (429), and asked for a pause of about 12 s', 1],
      ['The upstream refused a call for its rate (429); a pause of under a second follows', 4],
    ]);
  });

  it('cuts what is too long', () => {
    const { tell, list } = start();
    tell({ kind: 'warning', message: 'x'.repeat(5000) });
    expect(String(list()[0]?.[0]).length).toBeLessThan(400);
  });
});

describe('in words', () => {
  it.each<[SidecarEvent, string | undefined, string?]>([
    [{ kind: 'permit-granted', route: 'default', waitedMs: 1 }, undefined],
    [{ kind: 'attempt-ended', route: 'default', outcome: 'ok', durationMs: 1 }, undefined],
    [
      { kind: 'attempt-ended', route: 'default', outcome: 'timeout', durationMs: 1 },
      'The upstream did not answer in time',
      'error',
    ],
    [
      { kind: 'attempt-ended', route: 'a', outcome: 'unreachable', durationMs: 1 },
      'The upstream of a could not be reached',
      'error',
    ],
    [
      { kind: 'attempt-ended', route: 'default', outcome: 'reset', durationMs: 1 },
      'The upstream broke a connection off',
      'error',
    ],
    [{ kind: 'attempt-ended', route: 'default', outcome: 'reset', durationMs: 1, isOwn: true }, undefined],
    [{ kind: 'local-reply', code: 'QUEUE_FULL' }, 'The sidecar answered a call itself: QUEUE_FULL', 'warn'],
    [{ kind: 'retry', route: 'default', reason: 'rate_limited' }, undefined],
    [
      { kind: 'retry', route: 'default', reason: 'status' },
      'A call was tried again after an error of the upstream',
      'info',
    ],
    [
      { kind: 'insufficient-scope', route: 'default', needed: 'a' },
      'The upstream requires a scope that the token does not have: a',
      'warn',
    ],
    [
      { kind: 'token-requested', credential, outcome: 'ok', durationMs: 1, lifetimeMs: 3_600_000 },
      'Token obtained, valid for 60 min',
      'info',
    ],
    [
      { kind: 'token-requested', credential: 'b', outcome: 'rejected', durationMs: 1, detail: 'no' },
      'Token of b not obtained (rejected): no',
      'error',
    ],
    [
      { kind: 'token-invalidated', credential, reason: 'unauthorized' },
      'Token put away: the upstream refused it (401)',
      'warn',
    ],
    [
      { kind: 'token-invalidated', credential, reason: 'rotated' },
      'Token put away: the credentials have changed',
      'info',
    ],
    [
      { kind: 'token-found', credential, from: 'the cache file', validForMs: 90_000 },
      'Token taken from the cache file, valid for 90 s',
      'info',
    ],
    [
      { kind: 'token-circuit', credential, phase: 'open' },
      'The token endpoint keeps failing: it is asked now and then',
      'error',
    ],
    [{ kind: 'token-circuit', credential, phase: 'closed' }, 'The token endpoint works again', 'info'],
    [
      { kind: 'token-scopes-missing', credential, missing: ['a', 'b'] },
      'Token lacks scopes that were asked for: a b',
      'warn',
    ],
    [{ kind: 'token-scopes-missing', credential, missing: [] }, 'Token: all scopes are granted again', 'info'],
    [{ kind: 'credential-rotation', credential, outcome: 'taken' }, 'New credentials taken', 'info'],
    [
      { kind: 'credential-rotation', credential, outcome: 'refused', detail: 'no' },
      'New credentials refused, the older ones stay in use: no',
      'warn',
    ],
    [{ kind: 'configuration-read', outcome: 'ok', lines: [] }, 'Configuration read again: nothing has changed', 'info'],
    [
      { kind: 'configuration-read', outcome: 'refused', lines: ['a'] },
      'Configuration not taken over; a restart is needed for: a',
      'warn',
    ],
    [{ kind: 'fleet-joined' }, 'Joined the fleet', 'info'],
    [
      { kind: 'listening', server: 'proxy', url: 'http://localhost:1' },
      'The proxy port listens on http://localhost:1',
      'info',
    ],
    [{ kind: 'draining', inFlight: 1, queued: 1, drainMs: 1 }, 'Shutting down: calls under way are finished', 'warn'],
  ])('%j', (event, words, level) => {
    const said = describeEvent(event);
    expect(said?.text).toBe(words);
    expect(said?.level).toBe(level);
  });

  it('an attempt that brought an answer costs no words: nothing is put together of it', () => {
    let looks = 0;
    for (const outcome of ['ok', 'rate_limited', 'unauthorized', 'error_status'] as const) {
      const event: SidecarEvent = {
        ...{ kind: 'attempt-ended', outcome, durationMs: 1 },
        get route() {
          looks++;
          return 'default';
        },
      };
      expect(describeEvent(event)).toBeUndefined();
    }
    expect(looks).toBe(0);
  });
});
