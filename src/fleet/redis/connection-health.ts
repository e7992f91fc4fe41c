/**
 * Whether the fleet can be asked, and why not: told once for each change, however many commands meet it. A server that takes
 * connections and refuses every command counts as one that cannot be asked.
 */
import type { Clock } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import type { RedisFault } from './redis-fault.ts';

/** What the admin port and the metrics show. Holds no secret. */
export interface FleetConnectionState {
  /** True while commands are answered. */
  readonly connected: boolean;
  /** Why not, in words that begin with Redis; undefined while connected, and before the first attempt has ended. */
  readonly fault: string | undefined;
  /** Since when it has been so, epoch milliseconds. */
  readonly sinceWallAt: number;
}

export class ConnectionHealth {
  readonly #clock: Pick<Clock, 'wallNow'>;
  readonly #observe: EventObserver;
  #state: FleetConnectionState;
  #isConnected = false;
  /** The error reply to the last command, unless it was answered. */
  #lastErrorReply: RedisFault | undefined;
  /** Faults told since it was last connected: two that alternate are two lines, not one for each attempt. */
  readonly #reportedFaults = new Set<string>();

  constructor(clock: Pick<Clock, 'wallNow'>, observe: EventObserver) {
    this.#clock = clock;
    this.#observe = observe;
    this.#state = { connected: false, fault: undefined, sinceWallAt: clock.wallNow() };
  }

  state(): FleetConnectionState {
    return this.#state;
  }

  recordConnected(): void {
    this.#isConnected = true;
    // After a refusal only an answered command shows that it is over.
    if (this.#lastErrorReply === undefined) this.#transition(undefined);
  }

  recordDisconnected(fault: RedisFault): void {
    this.#isConnected = false;
    if (fault !== this.#lastErrorReply) this.#lastErrorReply = undefined;
    this.#transition(fault);
  }

  /** @param fault the error reply; undefined when the command was answered as it should be */
  recordReply(fault: RedisFault | undefined): void {
    this.#lastErrorReply = fault;
    if (this.#isConnected || fault !== undefined) this.#transition(fault);
  }

  #transition(fault: RedisFault | undefined): void {
    const detail = fault && `Redis ${fault.message}`;
    if (detail === undefined ? this.#state.connected : detail === this.#state.fault) return;
    this.#state = { connected: detail === undefined, fault: detail, sinceWallAt: this.#clock.wallNow() };
    if (detail === undefined) {
      this.#reportedFaults.clear();
      this.#observe({ kind: 'fleet-joined' });
    } else if (!this.#reportedFaults.has(detail)) {
      this.#reportedFaults.add(detail);
      this.#observe({ kind: 'fleet-lost', detail });
    }
  }
}
