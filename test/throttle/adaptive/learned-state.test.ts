/** The text that outlasts a process: what is taken from it, and what is not. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatStateFile,
  formatLearnedState,
  parseStateFile,
  parseLearnedState,
} from '../../../src/throttle/adaptive/learned-state.ts';

const OWNER = { upstream: 'https://api.example.com', client: 'hash-of-the-client' };
const NOW = Date.UTC(2026, 10, 1);
const HOUR_MS = 3_600_000;
const LEARNED = formatLearnedState({ version: 1, wallAt: NOW, governor: { rate: 9.5 } }, OWNER);
const TEXT = JSON.stringify(LEARNED);

function reasonOf(text: string, owner = OWNER, wallNow = NOW): string | undefined {
  const reading = parseLearnedState(JSON.parse(text), owner, wallNow);
  return reading.kind === 'useless' ? reading.reason : undefined;
}

describe('what was learned', () => {
  it('is read as it was written', () => {
    expect(parseLearnedState(LEARNED, OWNER, NOW + HOUR_MS)).toEqual({
      kind: 'read',
      state: { version: 1, wallAt: NOW, governor: { rate: 9.5 } },
    });
  });

  it.each([
    ['from another upstream', { ...OWNER, upstream: 'https://api.example.com:8443' }, NOW, 'from another upstream'],
    ['with another client', { ...OWNER, client: 'another' }, NOW, 'with another client id'],
    ['yesterday', OWNER, NOW + 24 * HOUR_MS + 1, 'more than a day old'],
    ['tomorrow', OWNER, NOW - HOUR_MS, 'dated in the future'],
  ])('%s is of no use', (_, owner, wallNow, reason) => {
    expect(reasonOf(TEXT, owner, wallNow)).toContain(reason);
  });

  it.each([
    [24 * HOUR_MS, 'exactly a day later'],
    [-60_000, 'by a clock that is a minute ahead'],
  ])('is of use %i ms later: %s', (laterMs) => {
    expect(reasonOf(TEXT, OWNER, NOW + laterMs)).toBeUndefined();
  });

  it.each(['{}', 'null', '[]', '7', '"x"', TEXT.replace('"version":1', '"version":2')])(
    'is not to be had from %j',
    (text) => {
      expect(reasonOf(text)).toMatch(/^is (?:not what a sidecar writes|of another version)$/);
    },
  );

  it.each([
    ['wallAt', '"today"'],
    ['wallAt', '1e999'],
    ['governor', 'null'],
    ['governor', '5'],
  ])('with a %s of %s is not to be had', (name, value) => {
    const text = TEXT.replace(new RegExp(`"${name}":(?:\\d+|\\{[^}]*\\})`), `"${name}":${value}`);
    expect(text).not.toBe(TEXT);
    expect(reasonOf(text)).toBe('is not what a sidecar writes');
  });

  it('is never guessed, and nothing throws', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(parseLearnedState(value, OWNER, NOW).kind).toBe('useless');
      }),
    );
  });
});

describe('a file', () => {
  it('holds a limit for each throttle, whatever they are called', () => {
    const limits = new Map([
      ['default', LEARNED],
      ['__proto__', LEARNED],
    ]);
    expect(parseStateFile(formatStateFile(limits))).toEqual({ kind: 'read', limits });
    expect(formatStateFile(limits)).toMatch(/\}\n$/);
  });

  it('of the first version, with one limit in it, is of no use', () => {
    expect(parseStateFile(TEXT)).toEqual({ kind: 'useless', reason: 'is of another version' });
  });

  it.each(['', '{', 'null', '7', '{"version":2}', '{"version":2,"limits":{}}', '{"version":2,"limits":[["a"]]}'])(
    'is not to be had from %j',
    (text) => {
      expect(parseStateFile(text)).toEqual({ kind: 'useless', reason: 'is not what a sidecar writes' });
    },
  );

  it('is never guessed, and nothing throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        expect(parseStateFile(text).kind).toBe('useless');
      }),
    );
  });
});
