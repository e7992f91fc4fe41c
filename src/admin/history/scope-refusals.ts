/** The routes whose upstream refused requests because the token lacks a scope (pure). Metrics and log count these refusals, too. */
import type { SidecarEvent } from '../../telemetry/events.ts';
import type { ScopeRefusals } from '../status/status-shape.ts';

export class ScopeRefusalLog {
  readonly #byRoute = new Map<string, ScopeRefusals>();
  readonly #wallNow: () => number;

  /** @param wallNow epoch milliseconds */
  constructor(wallNow: () => number) {
    this.#wallNow = wallNow;
  }

  add({ route, needed }: Extract<SidecarEvent, { kind: 'insufficient-scope' }>): void {
    const count = (this.#byRoute.get(route)?.count ?? 0) + 1;
    this.#byRoute.set(route, { route, count, wallAt: this.#wallNow(), needed });
  }

  /** In the order of the first refusal of each route. */
  read(): readonly ScopeRefusals[] {
    return [...this.#byRoute.values()];
  }
}
