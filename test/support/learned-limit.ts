/** A limit that a sidecar has learned, as the file of `throttle.stateFile`: restored, it is in use from the start. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { formatLearnedState, formatStateFile } from '../../src/throttle/state-file.ts';

/** Ten calls in each second, of this client at this upstream. @returns the path of the file, which the end of the test removes */
export function writeLearnedWindow(upstreamUrl: string, clientId: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'learned-limit-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const governor = { kind: 'window', windowMs: 1000, limit: 10, rate: 10, margin: 1, used: 0 };
  const client = createHash('sha256').update(clientId).digest('base64url').slice(0, 22);
  const owner = { upstream: new URL(upstreamUrl).origin, client };
  const state = formatLearnedState({ version: 1, wallAt: Date.now(), governor }, owner);
  const path = join(folder, 'limits.json');
  writeFileSync(path, formatStateFile(new Map([['default', state]])));
  return path;
}
