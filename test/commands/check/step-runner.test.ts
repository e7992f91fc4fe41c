/** A walk of steps: what is thrown, stopped or late becomes what was found. */
import { expect, test } from 'vitest';
import { StepRunner } from '../../../src/commands/check/step-runner.ts';
import type { StepResult } from '../../../src/commands/check/step-runner.ts';
import { ManualClock } from '../../support/manual-clock.ts';

function startWalk() {
  const clock = new ManualClock();
  const [stop, late] = [new AbortController(), new AbortController()];
  const signal = AbortSignal.any([stop.signal, late.signal]);
  return { clock, stop, late, walk: new StepRunner('upstream', { clock, stop: stop.signal, signal }) };
}

const never = (): Promise<StepResult<never>> => new Promise(() => undefined);

test('returns the value of a step and measures its duration', async () => {
  const { walk, clock } = startWalk();
  const value = await walk.run('connect', async () => {
    await clock.advance(12);
    return { outcome: 'ok', detail: 'found', value: 7 } as const;
  });
  expect(value).toBe(7);
  expect(walk.steps).toEqual([{ step: 'connect', target: 'upstream', outcome: 'ok', ms: 12, detail: 'found' }]);
});

test('reports the code of an unexpected error, not its message', async () => {
  const { walk } = startWalk();
  const error = Object.assign(new Error('the secret is 42'), { code: 'EODD' });
  expect(await walk.run('connect', () => Promise.reject(error))).toBeUndefined();
  expect(walk.steps).toMatchObject([{ outcome: 'fail', detail: 'failed unexpectedly (EODD)' }]);
});

test('an interrupt ends the running step and skips the rest', async () => {
  const { walk, stop } = startWalk();
  const step = walk.run('connect', never);
  stop.abort();
  await step;
  await walk.run('tls', never);
  expect(walk.steps).toMatchObject([
    { step: 'connect', outcome: 'skip', detail: 'interrupted' },
    { step: 'tls', outcome: 'skip', detail: 'interrupted' },
  ]);
});

test('the timeout of the whole check fails the running step', async () => {
  const { walk, late } = startWalk();
  const step = walk.run('token', never);
  late.abort();
  await step;
  expect(walk.steps).toMatchObject([
    { step: 'token', outcome: 'fail', detail: expect.stringContaining('time') as string },
  ]);
});
