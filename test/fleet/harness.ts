/** A fleet's door over a real Redis, in real time, with everything it told at hand. It ends with the test. */
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import type { Fleet, FleetOptions } from '../../src/fleet/fleet.ts';
import { openLink } from '../../src/fleet/link.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';

export interface JoinOptions extends Partial<FleetOptions> {
  readonly url: string;
  readonly caFile?: string;
}

export interface Joined {
  readonly fleet: Fleet;
  readonly events: readonly SidecarEvent[];
  /** Events of the connection alone, in words. */
  readonly told: () => string[];
}

/** Begins to join; whoever needs the connection waits for it. */
export function join({ url, caFile, ...rest }: JoinOptions): Joined {
  const events: SidecarEvent[] = [];
  const fleet = createFleet({
    open: () => openLink({ url, caFile, timeoutMs: 2000, clock: systemClock }),
    timeoutMs: 500,
    clock: systemClock,
    random: Math.random,
    observe: (event) => events.push(event),
    ...rest,
  });
  onTestFinished(() => fleet.close());
  fleet.start();
  const told = (): string[] =>
    events.flatMap((event) =>
      event.kind === 'fleet-lost' ? [`lost: ${event.detail}`] : event.kind === 'fleet-joined' ? ['joined'] : [],
    );
  return { fleet, events, told };
}

/** Waits for I/O: resolves as soon as `holds`, fails after five seconds. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const giveUpAt = performance.now() + 5000;
  while (!(await holds())) {
    if (performance.now() > giveUpAt) throw new Error(`this did not come about: ${what}`);
    await sleep(5);
  }
}
