/**
 * Files that a former version has written, byte for byte: this version reads them, and writes the same form, so that an upgrade and a rollback keep
 * the token and the learned limit. docs/upgrades.md says more about a rollback. The formats themselves are tested in test/token/store and test/throttle/adaptive.
 */
import { describe, expect, it } from 'vitest';
import {
  formatLearnedState,
  formatStateFile,
  parseLearnedState,
  parseStateFile,
} from '../../src/throttle/state-file.ts';
import { parseLimitSnapshot } from '../../src/throttle/adaptive/limit-snapshot.ts';
import { openToken, sealToken } from '../../src/token/store/sealed-token.ts';
import { ORDINARY_REQUEST } from '../token/store/ordinary-request.ts';

/** In the format of this version; any later version that has the format opens it. */
const SEALED_TOKEN =
  'bst3.mvE7-_aDbkw5_Tqs9cvMYSmftHs50FO6ylOVLd4AFQyB6UEVfu-S7hdBWU-ul0tsurzzQBsVah1MrAArD2hX2w-WXvwgGKWSRqrnlzVFGZdR98wrL2NhT455Dolhc_bttRq2pyJP6kgD1Bd20g';
/** Written by revision da1795d, for a binding with fewer members. */
const FORMER_TOKEN =
  'bst1.cMK6C4tN8L-L3bqWU5LOh6WXeoHKZWyV-5Ahl28qYsZoJ6ooRTzbJ77x5s_XQ5gWq5ulrPCT-m_6QQeUGdEjnqYfulcXq4s2CinEDd5qZZLzHUv-1OxKKFf7kJGH0_wzqQwrrsL7quReooK9rA';
const STATE_FILE =
  '{"version":2,"limits":[["default",{"version":1,"upstream":"https://api.test","client":"hash","wallAt":1790000000000,"governor":{"kind":"sliding-window","windowMs":60000,"limit":100,"rate":1.6,"margin":0.9,"used":3}}]]}\n';

const WRITTEN_AT = 1_790_000_000_000;

it('auth.cacheFile: the token is opened with the same credentials and settings, and one of the former format never', () => {
  const binding = {
    tokenUrl: 'https://auth.test/oauth/token',
    clientId: 'legacy-app',
    method: 'client_secret_basic',
    requestedParameters: [
      ['grant_type', 'client_credentials'],
      ['scope', 'a b'],
    ],
    ...ORDINARY_REQUEST,
  } as const;
  const identity = { binding, keyMaterial: 'fixture-secret' };
  const token = openToken(SEALED_TOKEN, identity, 'bst3');
  expect(token).toEqual({
    value: 'a-token-of-a-former-version',
    scope: 'a b',
    obtainedWallAt: WRITTEN_AT,
    expiresWallAt: WRITTEN_AT + 3_600_000,
  });
  const sealed = sealToken(token!, identity, 'bst3');
  expect(sealed).toMatch(/^bst3\./);
  expect(sealed).toHaveLength(SEALED_TOKEN.length);
  expect(openToken(FORMER_TOKEN, identity, 'bst3')).toBeUndefined();
  expect(openToken(FORMER_TOKEN.replace('bst1', 'bst3'), identity, 'bst3')).toBeUndefined();
});

describe('throttle.stateFile', () => {
  const owner = { upstream: 'https://api.test', client: 'hash' };

  it('the limit is restored', () => {
    const file = parseStateFile(STATE_FILE);
    if (file.kind !== 'read') throw new Error(file.reason);
    const entry = parseLearnedState(file.limits.get('default'), owner, WRITTEN_AT + 3_600_000);
    if (entry.kind !== 'read') throw new Error(entry.reason);
    expect(parseLimitSnapshot(entry.state.governor)).toEqual({
      ...{ kind: 'window', windowMs: 60_000, limit: 100, rate: 1.6, margin: 0.9, used: 3 },
    });
    expect(formatStateFile(new Map([['default', formatLearnedState(entry.state, owner)]]))).toBe(STATE_FILE);
  });

  it.each([1, 3, '2', null])('a file of version %j is not used', (version) => {
    expect(parseStateFile(JSON.stringify({ version, limits: [] }))).toEqual({
      kind: 'unusable',
      reason: 'is of another version',
    });
  });
});
