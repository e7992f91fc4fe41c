/**
 * Replaces the timers, Date and Math.random of the process by those of a virtual clock, for clients that read them. Install it before
 * such a client is imported, since it may keep references; outside a run the originals are used.
 */
import type { Cancel, Clock, Random } from '../../../src/platform/clock.ts';

interface Present {
  readonly clock: Clock;
  readonly random: Random;
}

let present: Present | undefined;
let isInstalled = false;

/** Used by the clients during `run`. */
export async function withVirtualGlobals<T>(clock: Clock, random: Random, run: () => Promise<T>): Promise<T> {
  if (!isInstalled) throw new Error('the virtual globals must be installed first');
  present = { clock, random };
  try {
    return await run();
  } finally {
    present = undefined;
  }
}

/** Once in a process; cannot be undone. */
export function installVirtualGlobals(): void {
  if (isInstalled) return;
  isInstalled = true;
  installTimers();
  installTime();
}

/** Cancels a virtual timer; takes what clearTimeout takes. */
class VirtualTimer {
  readonly #cancel: Cancel;

  constructor(cancel: Cancel) {
    this.#cancel = cancel;
  }

  cancel(): void {
    this.#cancel();
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }
}

/** Node's own rule: whole milliseconds, at least one. */
function wholeDelay(delayMs: unknown): number {
  const delay = Math.trunc(Number(delayMs));
  return delay >= 1 && delay < 2 ** 31 ? delay : 1;
}

function installTimers(): void {
  const real = { setTimeout, clearTimeout, setInterval, clearInterval };
  Object.assign(globalThis, {
    setTimeout: (run: (...values: unknown[]) => void, delayMs?: number, ...values: unknown[]): unknown => {
      if (present === undefined) return real.setTimeout(run, delayMs, ...values);
      return new VirtualTimer(
        present.clock.after(wholeDelay(delayMs), values.length === 0 ? run : () => run(...values)),
      );
    },
    setInterval: (run: (...values: unknown[]) => void, delayMs?: number, ...values: unknown[]): unknown => {
      if (present === undefined) return real.setInterval(run, delayMs, ...values);
      const { clock } = present;
      let cancel: Cancel;
      const again = (): void => {
        cancel = clock.after(wholeDelay(delayMs), () => {
          again();
          run(...values);
        });
      };
      again();
      return new VirtualTimer(() => cancel());
    },
    clearTimeout: (timer: NodeJS.Timeout | VirtualTimer | undefined): void => {
      if (timer instanceof VirtualTimer) timer.cancel();
      else real.clearTimeout(timer);
    },
    clearInterval: (timer: NodeJS.Timeout | VirtualTimer | undefined): void => {
      if (timer instanceof VirtualTimer) timer.cancel();
      else real.clearInterval(timer);
    },
  });
}

function installTime(): void {
  const RealDate = Date;
  const realNow = RealDate.now.bind(RealDate);
  const realPerformanceNow = performance.now.bind(performance);
  const realRandom = Math.random.bind(Math);
  const now = (): number => (present === undefined ? realNow() : Math.floor(present.clock.wallNow()));
  class VirtualDate extends RealDate {
    static override now = now;

    constructor(...parts: readonly number[]) {
      super(...((parts.length === 0 ? [now()] : parts) as [number]));
    }
  }
  Object.assign(globalThis, { Date: VirtualDate });
  performance.now = () => (present === undefined ? realPerformanceNow() : present.clock.now());
  Math.random = () => (present === undefined ? realRandom() : present.random());
}
