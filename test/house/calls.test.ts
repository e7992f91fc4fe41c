/**
 * How many functions of src/ one request calls, so that a longer path is a decision: a commit that raises a bound here says why. `npm run
 * bench:calls -- --list` names the functions. The count is the same in each run, since the clock of the counted process stands still meanwhile.
 */
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { recordWarmGet, startCallsFixture } from '../bench/calls/measured-calls.ts';
import { countCalls } from '../bench/calls/recorded-calls.ts';
import { writeLearnedWindow } from '../support/learned-limit.ts';

const ROOT = resolve(import.meta.dirname, '..', '..');

it('a warm GET makes at most 160 calls', async () => {
  expect(countCalls(await recordWarmGet(ROOT)).calls).toBeLessThanOrEqual(160);
});

it('a POST after a learned limit makes at most 235 calls', async () => {
  await using fixture = await startCallsFixture(ROOT, Infinity, (upstream, clientId) => ({
    SIDECAR_THROTTLE_STATE_FILE: writeLearnedWindow(upstream, clientId),
  }));
  expect(countCalls(await fixture.recordLeast('POST')).calls).toBeLessThanOrEqual(235);
});
