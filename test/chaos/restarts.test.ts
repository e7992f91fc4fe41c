/** Restarts under load, a sample of `npm run soak:restarts`. */
import { expect, it } from 'vitest';
import { runRestarts } from './restarts.ts';

const RESTARTS = 20;
/**
 * Connections that all restarts but the worst may break by chance: none to two were seen in twelve runs, seven of them on
 * a busy machine, once seven in a run of all tests, and 16 to 44 in five runs without a look at the port before it closes.
 */
const STRAY = 12;

it(
  'invariant 10: each accepted request gets a response, through one SIGTERM after another',
  { timeout: 240_000 },
  async () => {
    const report = await runRestarts(RESTARTS);
    expect(report.violations).toEqual([]);
    expect(report).toMatchObject({ lost: [], failedExits: [], duplicatedPosts: 0, falselyComplete: 0 });
    // There was a load, and there were times without a listener.
    expect(report.seen).toBeGreaterThan(200);
    expect(report.rejectedConnections).toBeGreaterThan(0);
    // Closing a port resets the connections that only the kernel has taken by then. A busy machine may stop the process just before
    // the closing, and then all callers have one: that once is bad luck.
    const worst = Math.max(...report.brokenByRestart);
    expect(report.brokenUnread.length - worst, `by restart: ${report.brokenByRestart.join()}`).toBeLessThanOrEqual(
      STRAY,
    );
  },
);
