/** One run of `check` as a person starts it; what it printed is kept for the search for secrets, and shown by a test that fails. */
import { expect, onTestFailed } from 'vitest';
import { spawnSidecar } from './sidecar-process.ts';
import type { Environment } from './sidecar-process.ts';

export interface CheckRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Lines that begin with this mark, without it. */
  readonly lines: (mark: 'ok' | 'warn' | 'FAIL' | 'skip') => readonly string[];
}

/** At the default address a sidecar of another user of this machine may listen, and would be checked, too. */
const UNUSED_ADDRESS = '127.0.0.1:1';

/** @param name says what is broken, and names the copy of the output */
export async function runCheck(name: string, env: Environment, args: readonly string[] = []): Promise<CheckRun> {
  await using process = spawnSidecar({
    name: `check-${name.replaceAll(/\W+/g, '-')}`,
    args: ['check', ...args],
    env: { SIDECAR_ADMIN_LISTEN: UNUSED_ADDRESS, ...env },
  });
  const { code } = await process.exit;
  const [stdout, stderr] = [process.stdout(), process.stderr()];
  onTestFailed(() => console.log(`check with ${name}: exit ${String(code)}\n${stdout}${stderr}`));
  const { SIDECAR_CLIENT_SECRET: secret = '' } = env;
  if (secret !== '') expect(stdout + stderr).not.toContain(secret);
  expect(stderr).not.toMatch(/^\s+at /m);
  const lines = (mark: string): string[] =>
    stdout.split('\n').flatMap((line) => (line.startsWith(mark) ? [line.slice(mark.length).trim()] : []));
  return { code, stdout, stderr, lines };
}
