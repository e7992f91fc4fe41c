/** The log lines of a configuration reload, and the log level. */
import { expect, it } from 'vitest';
import { createLog } from '../../../src/telemetry/log/log.ts';
import type { ReloadOutcome } from '../../../src/telemetry/events.ts';
import { MemoryStream } from './memory-stream.ts';

async function linesOf(outcome: ReloadOutcome, lines: readonly string[]): Promise<Record<string, unknown>[]> {
  const destination = new MemoryStream();
  const log = createLog({ level: 'info', destination });
  log.observe({ kind: 'configuration-read', outcome, lines });
  await log.close(100);
  return destination.lines;
}

it('writes one line for changes, one for keys that need a restart, one per problem', async () => {
  expect(await linesOf('ok', ['a: 1 → 2', 'b: 3 → 4'])).toMatchObject([
    { level: 'info', changes: ['a: 1 → 2', 'b: 3 → 4'], msg: 'configuration reloaded' },
  ]);
  expect(await linesOf('ok', [])).toMatchObject([{ msg: 'configuration reloaded: nothing has changed' }]);
  expect(await linesOf('refused', ['a', 'b'])).toMatchObject([{ level: 'warn', keys: ['a', 'b'] }]);
  expect(await linesOf('invalid', ['a: no', 'b: no'])).toMatchObject([
    { level: 'error', problem: 'a: no' },
    { level: 'error', problem: 'b: no' },
  ]);
});

it('applies a new level from the next line on', async () => {
  const destination = new MemoryStream();
  const log = createLog({ level: 'info', destination });
  log.info('one');
  log.setLevel('error');
  log.info('two');
  log.error('three');
  log.setLevel('debug');
  log.debug('four');
  await log.close(100);
  expect(destination.lines.map(({ msg }) => msg)).toEqual(['one', 'three', 'four']);
});
