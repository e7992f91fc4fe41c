/** Which calls stay open in the file of unknown calls, however their attempts, their request and their client end. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Secrets } from '../../src/platform/secrets.ts';
import { openUnknownCalls } from '../../src/composition/unknown-calls.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { readOpenCalls, scratchFile } from '../unknown-calls/scratch-file.ts';
import { plans, play } from './played-plan.ts';

it('a call that reached the upstream stays open unless its client has a response to its newest attempt', async () => {
  await fc.assert(
    fc.asyncProperty(plans, fc.boolean(), async (plan, leaves) => {
      const file = scratchFile();
      const settings = { file, onWriteError: 'refuse', paths: true } as const;
      const clock = new ManualClock();
      const context = { secrets: new Secrets(clock), clock, observe: () => undefined };
      const unknownCalls = await openUnknownCalls(settings, context);
      const { reply, problem, begun, proxy } = await play(plan, leaves, unknownCalls);
      unknownCalls?.close();
      const isCut = proxy.ended()[0]?.cutBy !== undefined;
      const code = isCut ? 'RESPONSE_CUT' : (reply ?? 'CLIENT_LEFT');
      const isOpen = isCut || reply === undefined || problem?.outcome === 'unknown';
      const isRecorded = plan.method !== 'PUT' && begun.length > 0;
      expect(readOpenCalls(file)).toMatchObject(isRecorded && isOpen ? [{ method: plan.method, code }] : []);
      expect(readFileSync(file, 'utf8').split('"at":').length - 1).toBe(isRecorded ? 1 : 0);
    }),
    { numRuns: 150 },
  );
});
