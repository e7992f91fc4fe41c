/** The newest fault of each route and cause in its own words (pure), for the verdict. Bounded by the routes and the closed set of causes. */
import type { FaultCause, SidecarEvent } from '../../telemetry/events.ts';

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
  readonly #wallNow: () => number;

  /** @param wallNow epoch milliseconds */
  constructor(wallNow: () => number) {
    this.#wallNow = wallNow;
  }

  /** What the sidecar ended itself is no fault. */
  add({ route, cause, detail }: Extract<SidecarEvent, { kind: 'attempt-failed' }>): void {
    if (cause !== undefined) this.#faults.set(`${route} ${cause}`, { route, cause, detail, wallAt: this.#wallNow() });
  }

  /** In the order of the first of each route and cause. */
  read(): readonly LastFault[] {
    return [...this.#faults.values()];
  }
}
