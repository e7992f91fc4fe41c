/** The log lines of tokens, credentials, scopes and reloads, and the level. */
import { expect, test } from 'vitest';
import type { ReloadOutcome, SidecarEvent } from '../../../src/telemetry/events.ts';
import { createLog } from '../../../src/telemetry/log/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryStream } from './memory-stream.ts';

function open() {
  const clock = new ManualClock(Date.UTC(2026, 10, 1));
  const stream = new MemoryStream();
  return { clock, stream, log: createLog({ level: 'info', destination: stream, clock }) };
}

const credential = 'default';

test.each<[SidecarEvent, string, string]>([
  [{ kind: 'token-found', credential, from: 'auth.cacheFile', validForMs: 1000 }, 'info', 'token reused'],
  [
    { kind: 'token-requested', credential, outcome: 'unavailable', durationMs: 1, detail: 'is empty' },
    'warn',
    'token request failed',
  ],
  [
    { kind: 'token-requested', credential, outcome: 'unavailable', durationMs: 1, detail: 'is empty', file: '/t' },
    'warn',
    'the token file cannot be used',
  ],
  [{ kind: 'token-circuit', credential, phase: 'open' }, 'warn', 'keeps failing'],
  [{ kind: 'token-circuit', credential, phase: 'closed' }, 'info', 'works again'],
  [{ kind: 'token-scopes-missing', credential, missing: ['urn:a'] }, 'warn', 'fewer scopes'],
  [{ kind: 'token-scopes-missing', credential, missing: [] }, 'info', 'all requested scopes'],
  [{ kind: 'credential-rotation', credential, outcome: 'taken' }, 'info', 'new credentials applied'],
  [
    { kind: 'credential-rotation', credential, outcome: 'refused', detail: 'invalid_client' },
    'warn',
    'previous ones stay',
  ],
  [
    { kind: 'credential-rotation', credential, outcome: 'unreadable', detail: 'is empty' },
    'warn',
    'previous ones stay',
  ],
])('%j', async (event, level, words) => {
  const { log, stream } = open();
  log.observe(event);
  await log.close(0);
  const { kind, ...fields } = event;
  expect(kind).not.toBe('');
  expect(stream.lines).toEqual([
    expect.objectContaining({ ...fields, level, msg: expect.stringContaining(words) as string }),
  ]);
});

test('truncates the detail of a credential fault', async () => {
  const { log, stream } = open();
  log.observe({ kind: 'credential-rotation', credential, outcome: 'refused', detail: 'd'.repeat(2000) });
  await log.close(0);
  expect(String(stream.lines[0]?.detail).length).toBeLessThan(600);
});

test('logs a missing scope at once, then once a minute, per route', async () => {
  const { clock, log, stream } = open();
  for (let n = 0; n < 500; n++) log.observe({ kind: 'insufficient-scope', route: 'a', needed: 'urn:write' });
  log.observe({ kind: 'insufficient-scope', route: 'b', needed: undefined });
  await clock.advance(60_000);
  await clock.advance(600_000);
  await log.close(0);
  expect(stream.lines.map(({ level, route, requests, needed }) => [level, route, requests, needed])).toEqual([
    ['warn', 'a', undefined, 'urn:write'],
    ['warn', 'b', undefined, undefined],
    ['warn', 'a', 499, 'urn:write'],
  ]);
});

async function linesOf(outcome: ReloadOutcome, lines: readonly string[]): Promise<Record<string, unknown>[]> {
  const destination = new MemoryStream();
  const log = createLog({ level: 'info', destination });
  log.observe({ kind: 'configuration-read', outcome, lines });
  await log.close(100);
  return destination.lines;
}

test('writes one line for changes, one for keys that need a restart, one per problem', async () => {
  expect(await linesOf('ok', ['a: 1 → 2', 'b: 3 → 4'])).toMatchObject([
    { level: 'info', changes: ['a: 1 → 2', 'b: 3 → 4'], msg: 'configuration reloaded' },
  ]);
  expect(await linesOf('ok', [])).toMatchObject([{ msg: 'configuration reloaded: nothing has changed' }]);
  expect(await linesOf('refused', ['a', 'b'])).toMatchObject([{ level: 'warn', keys: ['a', 'b'] }]);
  expect(await linesOf('invalid', ['a: no', 'b: no'])).toMatchObject([
    { level: 'error', problem: 'a: no' },
    { level: 'error', problem: 'b: no' },
  ]);
});

test('applies a new level from the next line on', async () => {
  const destination = new MemoryStream();
  const log = createLog({ level: 'info', destination });
  log.info('one');
  log.setLevel('error');
  log.info('two');
  log.error('three');
  log.setLevel('debug');
  log.debug('four');
  await log.close(100);
  expect(destination.lines.map(({ msg }) => msg)).toEqual(['one', 'three', 'four']);
});
