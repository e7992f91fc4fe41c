/** The newest fault of each route and cause in its own words (pure), for the verdict. Bounded by the routes and the closed set of causes. */
import type { FaultCause } from '../../telemetry/events.ts';

export interface LastFault {
  readonly route: string;
  readonly cause: FaultCause;
  /** Names the fault and its error code, no secret. */
  readonly detail: string;
  /** Epoch milliseconds. */
  readonly wallAt: number;
}

export class LastFaults {
  readonly #faults = new Map<string, LastFault>();

  add(fault: LastFault): void {
    this.#faults.set(`${fault.route} ${fault.cause}`, fault);
  }

  /** In the order of the first of each route and cause. */
  read(): readonly LastFault[] {
    return [...this.#faults.values()];
  }
}
