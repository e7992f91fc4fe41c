/** One sample a second by the clock that is handed in, and none once it is stopped. */
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
      return [{ route: 'default', rate: 5, queued: 1, inFlight: 2 }];
    },
  });
  return { clock, watch, reads: () => reads };
}

describe('the watch', () => {
  it('takes no sample before it is started, then one a second, and tells its followers', async () => {
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

  it('tells no one who has left, and leaves no timer behind when it is stopped', async () => {
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

  it('keeps no process that has nothing else to do', async () => {
    const script = `
      import { createActivityRecorder } from './src/admin/history/activity-recorder.ts';
      import { systemClock } from './src/platform/clock.ts';
      createActivityRecorder({ clock: systemClock, throttles: () => [] }).start();
      console.log('started');`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    expect(stdout).toBe('started\n');
  });
});
