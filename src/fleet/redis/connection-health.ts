/**
 * Whether Redis is available, and why not; each change is one event, however many commands it affects. A server that accepts
 * connections and refuses every command counts as not available.
 */
import type { Clock } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import type { RedisFault } from './redis-fault.ts';

/** What the admin port and the metrics show. Holds no secret. */
export interface FleetConnectionState {
  /** True while commands get replies. */
  readonly connected: boolean;
  /** Begins with "Redis"; undefined while connected and before the first attempt has ended. */
  readonly fault: string | undefined;
  /** Time of the last change, epoch milliseconds. */
  readonly sinceWallAt: number;
}

export class ConnectionHealth {
  readonly #clock: Pick<Clock, 'wallNow'>;
  readonly #observe: EventObserver;
  #state: FleetConnectionState;
  #isConnected = false;
  /** The error reply to the last command; undefined after a normal reply. */
  #lastErrorReply: RedisFault | undefined;
  /** Faults reported since the last connection: two that alternate are two log lines, not one per attempt. */
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
    // After an error reply only a normal reply shows that commands work again.
    if (this.#lastErrorReply === undefined) this.#transition(undefined);
  }

  recordDisconnected(fault: RedisFault): void {
    this.#isConnected = false;
    if (fault !== this.#lastErrorReply) this.#lastErrorReply = undefined;
    this.#transition(fault);
  }

  /** @param fault the error reply; undefined for a normal one */
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
