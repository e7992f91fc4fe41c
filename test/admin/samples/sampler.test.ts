/** The sampler takes a sample once a second between start and stop. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Sampler } from '../../../src/admin/samples/sampler.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { eachSecondOf } from '../view.ts';

function start() {
  const clock = new ManualClock();
  const source = { counters: new Map(), durations: new Map(), bounds: [], gauges: () => [] };
  return { clock, sampler: new Sampler({ clock, source, runEverySecond: eachSecondOf(clock) }) };
}

describe('the sampler', () => {
  it('takes a sample once a second after start, and then calls its subscribers', async () => {
    const { clock, sampler } = start();
    const sampledAt: number[] = [];
    sampler.subscribe(() => sampledAt.push([...sampler.ring.readSeconds(1)][0]?.at ?? -1));
    await clock.advance(5000);
    expect(sampledAt).toEqual([]);
    sampler.start();
    await clock.advance(3000);
    expect(sampledAt).toEqual([6000, 7000, 8000]);
    expect(sampler.read()).toMatchObject({ now: 8000, spanMs: 3000 });
  });

  it('does not call after a cancel, and leaves no timer when stopped', async () => {
    const { clock, sampler } = start();
    let calls = 0;
    const cancel = sampler.subscribe(() => calls++);
    sampler.start();
    await clock.advance(1000);
    cancel();
    await clock.advance(1000);
    expect([calls, [...sampler.ring.readSeconds()].length]).toEqual([1, 2]);
    sampler.stop();
    await clock.advance(5000);
    expect([[...sampler.ring.readSeconds()].length, clock.pendingTimers]).toEqual([2, 0]);
  });

  it('does not keep the process alive', async () => {
    const script = `
      import { Sampler } from './src/admin/samples/sampler.ts';
      import { systemClock } from './src/platform/clock.ts';
      const source = { counters: new Map(), durations: new Map(), bounds: [], gauges: () => [] };
      new Sampler({ clock: systemClock, source }).start();
      console.log('started');`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    expect(stdout).toBe('started\n');
  });
});
