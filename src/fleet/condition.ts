/**
 * Whether the fleet can be asked, and why not: told once for each change, however many commands meet it. A server that takes
 * connections and refuses every command counts as one that cannot be asked.
 */
import type { Clock } from '../platform/clock.ts';
import type { Observe } from '../telemetry/events.ts';
import type { RedisFault } from './fault.ts';

/** What the admin port and the metrics show. Holds no secret. */
export interface FleetState {
  /** True while commands are answered. */
  readonly connected: boolean;
  /** Why not, in words that begin with Redis; undefined while connected, and before the first attempt has ended. */
  readonly fault: string | undefined;
  /** Since when it has been so, epoch milliseconds. */
  readonly sinceWallAt: number;
}

export class Condition {
  readonly #clock: Pick<Clock, 'wallNow'>;
  readonly #observe: Observe;
  #state: FleetState;
  #isUp = false;
  /** The error reply to the last command, unless it was answered. */
  #refusal: RedisFault | undefined;
  /** Faults told since it was last connected: two that alternate are two lines, not one for each attempt. */
  readonly #told = new Set<string>();

  constructor(clock: Pick<Clock, 'wallNow'>, observe: Observe) {
    this.#clock = clock;
    this.#observe = observe;
    this.#state = { connected: false, fault: undefined, sinceWallAt: clock.wallNow() };
  }

  state(): FleetState {
    return this.#state;
  }

  noteUp(): void {
    this.#isUp = true;
    // After a refusal only an answered command shows that it is over.
    if (this.#refusal === undefined) this.#turn(undefined);
  }

  noteDown(fault: RedisFault): void {
    this.#isUp = false;
    if (fault !== this.#refusal) this.#refusal = undefined;
    this.#turn(fault);
  }

  /** @param fault the error reply; undefined when the command was answered as it should be */
  noteAnswer(fault: RedisFault | undefined): void {
    this.#refusal = fault;
    if (this.#isUp || fault !== undefined) this.#turn(fault);
  }

  #turn(fault: RedisFault | undefined): void {
    const detail = fault && `Redis ${fault.message}`;
    if (detail === undefined ? this.#state.connected : detail === this.#state.fault) return;
    this.#state = { connected: detail === undefined, fault: detail, sinceWallAt: this.#clock.wallNow() };
    if (detail === undefined) {
      this.#told.clear();
      this.#observe({ kind: 'fleet-joined' });
    } else if (!this.#told.has(detail)) {
      this.#told.add(detail);
      this.#observe({ kind: 'fleet-lost', detail });
    }
  }
}
