/** The text of the state file: what is read from it, and what is rejected. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatStateFile,
  formatLearnedState,
  parseStateFile,
  parseLearnedState,
} from '../../src/throttle/state-file.ts';

const OWNER = { upstream: 'https://api.example.com', client: 'hash-of-the-client' };
const NOW = Date.UTC(2026, 10, 1);
const HOUR_MS = 3_600_000;
const LEARNED = formatLearnedState({ version: 1, wallAt: NOW, governor: { rate: 9.5 } }, OWNER);
const TEXT = JSON.stringify(LEARNED);

function reasonOf(text: string, owner = OWNER, wallNow = NOW): string | undefined {
  const parsed = parseLearnedState(JSON.parse(text), owner, wallNow);
  return parsed.kind === 'unusable' ? parsed.reason : undefined;
}

describe('an entry', () => {
  it('is read as it was written', () => {
    expect(parseLearnedState(LEARNED, OWNER, NOW + HOUR_MS)).toEqual({
      kind: 'read',
      state: { version: 1, wallAt: NOW, governor: { rate: 9.5 } },
    });
  });

  it.each([
    [
      'learned from another upstream',
      { ...OWNER, upstream: 'https://api.example.com:8443' },
      NOW,
      'from another upstream',
    ],
    ['learned with another client', { ...OWNER, client: 'another' }, NOW, 'with another client id'],
    ['of yesterday', OWNER, NOW + 24 * HOUR_MS + 1, 'more than a day old'],
    ['of tomorrow', OWNER, NOW - HOUR_MS, 'dated in the future'],
  ])('%s is unusable', (_, owner, wallNow, reason) => {
    expect(reasonOf(TEXT, owner, wallNow)).toContain(reason);
  });

  it.each([
    ['exactly a day old', 24 * HOUR_MS],
    ['dated a minute ahead', -60_000],
  ])('%s is read', (_, laterMs) => {
    expect(reasonOf(TEXT, OWNER, NOW + laterMs)).toBeUndefined();
  });

  it.each(['{}', 'null', '[]', '7', '"x"', TEXT.replace('"version":1', '"version":2')])(
    'of unknown form is unusable: %j',
    (text) => {
      expect(reasonOf(text)).toMatch(/^is (?:not what a sidecar writes|of another version)$/);
    },
  );

  it.each([
    ['wallAt', '"today"'],
    ['wallAt', '1e999'],
    ['governor', 'null'],
    ['governor', '5'],
  ])('with a %s of %s is unusable', (name, value) => {
    const text = TEXT.replace(new RegExp(`"${name}":(?:\\d+|\\{[^}]*\\})`), `"${name}":${value}`);
    expect(text).not.toBe(TEXT);
    expect(reasonOf(text)).toBe('is not what a sidecar writes');
  });

  it('of any other JSON value is unusable, and parsing never throws', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(parseLearnedState(value, OWNER, NOW).kind).toBe('unusable');
      }),
    );
  });
});

describe('a file', () => {
  it('holds an entry for each throttle, also for one named __proto__', () => {
    const limits = new Map([
      ['default', LEARNED],
      ['__proto__', LEARNED],
    ]);
    expect(parseStateFile(formatStateFile(limits))).toEqual({ kind: 'read', limits, counts: new Map() });
    expect(formatStateFile(limits)).toMatch(/\}\n$/);
  });

  it('of version 1 is unusable', () => {
    expect(parseStateFile(TEXT)).toEqual({ kind: 'unusable', reason: 'is of another version' });
  });

  it.each(['', '{', 'null', '7', '{"version":2}', '{"version":2,"limits":{}}', '{"version":2,"limits":[["a"]]}'])(
    'of unknown form is unusable: %j',
    (text) => {
      expect(parseStateFile(text)).toEqual({ kind: 'unusable', reason: 'is not what a sidecar writes' });
    },
  );

  it('of any other text is unusable, and parsing never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        expect(parseStateFile(text).kind).toBe('unusable');
      }),
    );
  });
});
