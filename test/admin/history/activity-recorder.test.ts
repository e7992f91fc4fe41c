/** The activity recorder samples once a second between start and stop. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createActivityRecorder } from '../../../src/admin/history/activity-recorder.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { eachSecondOf } from '../view.ts';

function start() {
  const clock = new ManualClock();
  let reads = 0;
  const watch = createActivityRecorder({
    clock,
    runEverySecond: eachSecondOf(clock),
    throttles: () => {
      reads++;
      return [{ route: 'default', rate: 5, queued: 1, inFlight: 2, pausedMs: 0 }];
    },
  });
  return { clock, watch, reads: () => reads };
}

describe('the activity recorder', () => {
  it('samples once a second after start and notifies its subscribers', async () => {
    const { clock, watch, reads } = start();
    const heard: unknown[] = [];
    watch.subscribe((row) => heard.push(row[0]));
    await clock.advance(5000);
    expect(reads()).toBe(0);
    watch.start();
    watch.observe({ kind: 'fleet-joined' });
    await clock.advance(3000);
    expect(reads()).toBe(3);
    expect(heard).toEqual([6, 7, 8].map((second) => clock.wallNow() / 1000 - 8 + second));
    expect(watch.eventLog.read()).toHaveLength(1);
  });

  it('does not notify after a cancel, and leaves no timer when stopped', async () => {
    const { clock, watch, reads } = start();
    let heard = 0;
    const cancel = watch.subscribe(() => heard++);
    watch.start();
    await clock.advance(1000);
    cancel();
    await clock.advance(1000);
    expect([heard, reads()]).toEqual([1, 2]);
    watch.stop();
    await clock.advance(5000);
    expect([reads(), clock.pendingTimers]).toEqual([2, 0]);
  });

  it('does not keep the process alive', async () => {
    const script = `
      import { createActivityRecorder } from './src/admin/history/activity-recorder.ts';
      import { systemClock } from './src/platform/clock.ts';
      createActivityRecorder({ clock: systemClock, throttles: () => [] }).start();
      console.log('started');`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    expect(stdout).toBe('started\n');
  });
});
