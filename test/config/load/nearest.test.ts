/** Which misspellings find a name, and which do not. */
import { expect, test } from 'vitest';
import { findNearest } from '../../../src/config/load/nearest.ts';
import { SETTINGS } from '../../../src/config/schema/schema.ts';

const KEYS = [...SETTINGS.keys()];
const COMMANDS = ['run', 'sandbox', 'check', 'config', 'health', 'wait', 'init', 'reload', 'help'];

test.each([
  // One slip: a letter left out, added, wrong, or two neighbours swapped.
  ['throttle.brust', KEYS, 'throttle.burst'],
  ['thottle.burst', KEYS, 'throttle.burst'],
  ['queue.maxx', KEYS, 'queue.max'],
  ['log.lavel', KEYS, 'log.level'],
  ['chekc', COMMANDS, 'check'],
  ['sandbix', COMMANDS, 'sandbox'],
  ['healthy', COMMANDS, 'health'],
  ['wiat', COMMANDS, 'wait'],
  // Letter case and separators are no slips at all.
  ['upstream.base_url', KEYS, 'upstream.baseUrl'],
  ['UPSTREAM.BASEURL', KEYS, 'upstream.baseUrl'],
  ['auth.client-secret-file', KEYS, 'auth.clientSecretFile'],
  ['CHECK', COMMANDS, 'check'],
  // The longer the name, the more slips, up to three.
  ['upstrem.reqestTimoutMs', KEYS, 'upstream.requestTimeoutMs'],
])('%s of %#', (name, candidates, meant) => {
  expect(findNearest(name, candidates)).toBe(meant);
});

test.each([
  ['start', COMMANDS],
  ['ran', COMMANDS],
  ['x', COMMANDS],
  ['', COMMANDS],
  ['serve', COMMANDS],
  ['stop', COMMANDS],
  ['colour', KEYS],
  ['upstream.colour', KEYS],
  ['rqestTimoutMss', ['requestTimeoutMilliseconds']],
  ['x'.repeat(100_000), KEYS],
])('nothing is near %s', (name, candidates) => {
  expect(findNearest(name, candidates)).toBeUndefined();
});

test('chooses the nearest candidate, and the first of equals', () => {
  expect(findNearest('queue.maxi', ['queue.maximum', 'queue.max', 'queue.maxy'])).toBe('queue.max');
});
