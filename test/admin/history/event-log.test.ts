/** The latest notable events: the text of each kind, repeated events counted, a bounded list. */
import { describe, expect, it } from 'vitest';
import { EventLog } from '../../../src/admin/history/event-log.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';

const lost = (detail: string): SidecarEvent => ({ kind: 'fleet-lost', detail });
const credential = 'default';
const refusal = { kind: 'rate-limited', route: 'default', scope: 'route', status: 429, fields: {} } as const;

function start() {
  let wallAt = 1000;
  const log = new EventLog(() => wallAt);
  const add = (event: SidecarEvent, afterMs = 0): void => {
    wallAt += afterMs;
    log.observe(event);
  };
  return { add, list: () => log.read().map(({ text, count }) => [text, count]), log };
}

describe('the list', () => {
  it('is newest first and bounded', () => {
    const { add, list } = start();
    for (let count = 0; count < 100; count++) add(lost(String(count)));
    expect(list()).toHaveLength(40);
    expect(list()[0]).toEqual(['Connection to the fleet lost: 99', 1]);
  });

  it('counts an event that is repeated within a minute, with the time of the last', () => {
    const { add, list, log } = start();
    add(lost('a'));
    add(lost('b'), 10);
    add(lost('a'), 10);
    expect(list()).toEqual([
      ['Connection to the fleet lost: a', 2],
      ['Connection to the fleet lost: b', 1],
    ]);
    expect(log.read()[0]).toMatchObject({ lastWallAt: 1020 });
    add(lost('a'), 60_001);
    expect(list().map(([, count]) => count)).toEqual([1, 2, 1]);
  });

  it('counts rate-limit responses of one route as one event and shows the newest', () => {
    const { add, list } = start();
    for (const pauseMs of [3000, 2000, 0]) add({ ...refusal, pauseMs, stated: true });
    add({ ...refusal, pauseMs: 400, stated: false });
    add({ ...refusal, route: 'quotes', pauseMs: 12_000, stated: true });
    expect(list()).toEqual([
      ['The upstream of route quotes rate limited a request (429); it asked for a pause of about 12 s', 1],
      ['The upstream rate limited a request (429); pausing for under a second', 4],
    ]);
  });

  it('truncates a long text', () => {
    const { add, list } = start();
    add({ kind: 'warning', message: 'x'.repeat(5000) });
    expect(String(list()[0]?.[0]).length).toBeLessThan(400);
  });
});

describe('the text of an event', () => {
  it.each<[SidecarEvent, string | undefined, string?]>([
    [
      { kind: 'attempt-failed', route: 'default', outcome: 'timeout', cause: 'other', detail: 'x' },
      'The upstream did not respond in time',
      'error',
    ],
    [
      { kind: 'attempt-failed', route: 'a', outcome: 'unreachable', cause: 'other', detail: 'x' },
      'The upstream of route a could not be reached',
      'error',
    ],
    [
      { kind: 'attempt-failed', route: 'default', outcome: 'reset', cause: 'other', detail: 'x' },
      'The upstream reset a connection',
      'error',
    ],
    [{ kind: 'attempt-failed', route: 'default', outcome: 'reset', cause: undefined, detail: 'x' }, undefined],
    [{ kind: 'retry', route: 'default', reason: 'rate_limited' }, undefined],
    [{ kind: 'retry', route: 'default', reason: 'status' }, 'A request was retried after an upstream error', 'info'],
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
      'Token request for b failed (rejected): no',
      'error',
    ],
    [
      { kind: 'token-requested', credential: 'b', outcome: 'unavailable', durationMs: 1, detail: 'no', file: '/t' },
      'The token file for b cannot be used: no',
      'error',
    ],
    [
      { kind: 'token-invalidated', credential, reason: 'unauthorized' },
      'Token discarded: the upstream rejected it (401)',
      'warn',
    ],
    [
      { kind: 'token-invalidated', credential, reason: 'rotated' },
      'Token discarded: the credentials have changed',
      'info',
    ],
    [
      { kind: 'token-found', credential, from: 'the cache file', validForMs: 90_000 },
      'Token taken from the cache file, valid for 90 s',
      'info',
    ],
    [
      { kind: 'token-circuit', credential, phase: 'open' },
      'The token endpoint keeps failing: it is probed at intervals',
      'error',
    ],
    [{ kind: 'token-circuit', credential, phase: 'closed' }, 'The token endpoint works again', 'info'],
    [{ kind: 'token-scopes-missing', credential, missing: ['a', 'b'] }, 'Token lacks requested scopes: a b', 'warn'],
    [{ kind: 'token-scopes-missing', credential, missing: [] }, 'Token has all requested scopes again', 'info'],
    [{ kind: 'credential-rotation', credential, outcome: 'taken' }, 'New credentials applied', 'info'],
    [
      { kind: 'credential-rotation', credential, outcome: 'refused', detail: 'no' },
      'New credentials refused, the previous ones stay in use: no',
      'warn',
    ],
    [{ kind: 'configuration-read', outcome: 'ok', lines: [] }, 'Configuration reloaded: nothing has changed', 'info'],
    [
      { kind: 'configuration-read', outcome: 'refused', lines: ['a'] },
      'Configuration not reloaded; a restart is needed for: a',
      'warn',
    ],
    [{ kind: 'fleet-joined' }, 'Connected to the fleet', 'info'],
    [
      { kind: 'listening', server: 'proxy', url: 'http://localhost:1' },
      'The proxy port listens on http://localhost:1',
      'info',
    ],
    [
      { kind: 'draining', inFlight: 1, queued: 1, drainMs: 1 },
      'Shutting down: requests in progress are completed',
      'warn',
    ],
  ])('%j', (event, text, level) => {
    const { add, log } = start();
    add(event);
    expect(log.read().map((logged) => [logged.text, logged.level])).toEqual(text === undefined ? [] : [[text, level]]);
  });
});
