/** Reads files again and again: that sees changes that file notifications miss, such as swapped links and network file systems. */
import type { Cancel, Clock } from '../../platform/clock.ts';

export const POLL_INTERVAL_MS = 2_000;

/** @param poll begins 2 s after the end of the one before; must not reject */
export function pollFiles(clock: Pick<Clock, 'after'>, poll: () => Promise<unknown>): Cancel {
  let isCancelled = false;
  const schedule = (): Cancel => clock.after(POLL_INTERVAL_MS, () => void run());
  const run = async (): Promise<void> => {
    await poll();
    if (!isCancelled) cancel = schedule();
  };
  let cancel = schedule();
  return () => {
    isCancelled = true;
    cancel();
  };
}
