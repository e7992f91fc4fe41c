/** What tests see of a process that they start: all that it printed is there when it has ended, however it ended. */
import { expect, it } from 'vitest';
import { spawnSidecar } from '../support/sidecar-process.ts';

const PRINTS = "printf '%60000s\\n' '' >&2; printf '%60000s\\n' ''; echo the last line";
const shell = (script: string) => spawnSidecar({ name: 'prints-and-ends', program: ['/bin/sh', '-c'], args: [script] });

it.each([
  ['exits', 'exit 3', { code: 3, signal: null }],
  ['is killed', 'kill -9 $$', { code: null, signal: 'SIGKILL' }],
])('one that %s while its output is still on its way', async (_, lastCommand, exit) => {
  await using process = shell(`(sleep 0.1; ${PRINTS}) & ${lastCommand}`);
  expect(await process.exit).toEqual(exit);
  expect([process.stdout().length, process.stderr().length]).toEqual([60_001 + 'the last line\n'.length, 60_001]);
});

it('finds a last line without a timeout, and reports a line that never came at once', async () => {
  for (let times = 0; times < 10; times++) {
    await using process = shell(`${PRINTS}; kill -9 $$`);
    expect(await process.waitForLine(/^the last/)).toBe('the last line');
    await expect(process.waitForLine(/^another/)).rejects.toThrow('ended with SIGKILL before it printed /^another/');
  }
});
