/** A fleet's door over a real Redis, in real time, with everything it told at hand. It ends with the test. */
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import type { Fleet, FleetOptions } from '../../src/fleet/fleet.ts';
import { openLink } from '../../src/fleet/link.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';

export { until } from '../support/until.ts';

export interface JoinOptions extends Partial<FleetOptions> {
  readonly url: string;
  readonly caFile?: string;
  /** Default: longer than a busy machine takes. */
  readonly connectTimeoutMs?: number;
}

export interface Joined {
  readonly fleet: Fleet;
  readonly events: readonly SidecarEvent[];
  /** Events of the connection alone, in words. */
  readonly told: () => string[];
}

/** Begins to join; whoever needs the connection waits for it. */
export function join({ url, caFile, connectTimeoutMs = 15_000, ...rest }: JoinOptions): Joined {
  const events: SidecarEvent[] = [];
  const fleet = createFleet({
    open: () => openLink({ url, caFile, timeoutMs: connectTimeoutMs, clock: systemClock }),
    timeoutMs: 5000,
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
