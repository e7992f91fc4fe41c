/** A file of unknown calls in a folder of its own, which goes with the test. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { settledPathOf } from '../../src/unknown-calls/call-file.ts';
import type { OpenCall } from '../../src/unknown-calls/call-records.ts';
import { listOpenCalls } from '../support/open-calls.ts';

export function scratchFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'unknown-calls-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'calls');
}

export function readOpenCalls(path: string): OpenCall[] {
  const settled = settledPathOf(path);
  return listOpenCalls(readFileSync(path, 'utf8'), existsSync(settled) ? readFileSync(settled, 'utf8') : '');
}
