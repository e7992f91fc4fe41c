/**
 * How many functions of src/ one request calls, so that a longer path is a decision: a commit that raises a bound here says why. `npm run
 * bench:calls -- --list` names the functions. The count is the same in each run: of several recordings the least is taken.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { formatLearnedState, formatStateFile } from '../../src/throttle/state-file.ts';
import { recordWarmGet, startCallsFixture } from '../bench/calls/measured-calls.ts';
import { countCalls } from '../bench/calls/recorded-calls.ts';

const ROOT = resolve(import.meta.dirname, '..', '..');

it('a warm GET makes at most 160 calls', async () => {
  expect(countCalls(await recordWarmGet(ROOT)).calls).toBeLessThanOrEqual(160);
});

it('a POST after a learned limit makes at most 235 calls', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'calls-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const stateFile = join(folder, 'limits.json');
  await using fixture = await startCallsFixture(ROOT, Infinity, (upstream, clientId) => {
    writeFileSync(stateFile, learnedLimit(upstream, clientId));
    return { SIDECAR_THROTTLE_STATE_FILE: stateFile };
  });
  expect(countCalls(await fixture.recordLeast('POST')).calls).toBeLessThanOrEqual(235);
});

/** The state file of a sidecar that learned a limit of ten calls a second: a restored limit runs the functions of a learned one. */
function learnedLimit(upstreamUrl: string, clientId: string): string {
  const governor = { kind: 'window', windowMs: 1000, limit: 10, rate: 10, margin: 1, used: 0 };
  const client = createHash('sha256').update(clientId).digest('base64url').slice(0, 22);
  const owner = { upstream: new URL(upstreamUrl).origin, client };
  return formatStateFile(
    new Map([['default', formatLearnedState({ version: 1, wallAt: Date.now(), governor }, owner)]]),
  );
}
