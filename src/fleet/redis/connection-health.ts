/**
 * Whether Redis is available, and why not; each change is one event, however many commands it affects. A server that accepts
 * connections and rejects every command, or replies too late, counts as not available.
 */
import type { Clock } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import type { RedisFault } from './redis-fault.ts';
import type { LateReplies } from './latency-monitor.ts';

/** What the admin port and the metrics show. Holds no secret. */
export interface FleetConnectionState {
  /** `degraded`: connected, but the replies are too late to be used. */
  readonly state: 'connected' | 'degraded' | 'disconnected';
  /** True while commands get replies in time: in the state `connected` only. */
  readonly connected: boolean;
  /** Begins with "Redis"; undefined while connected and before the first attempt has ended. */
  readonly fault: string | undefined;
  /** Time of the last change, epoch milliseconds. */
  readonly sinceWallAt: number;
}

/** Stands for all faults of this kind, whose figures differ each time. */
const DEGRADED = 'degraded';

interface ConnectionHealthOptions {
  readonly clock: Pick<Clock, 'wallNow'>;
  readonly observe: EventObserver;
  /** Longest wait for the reply to one command, milliseconds. */
  readonly timeoutMs: number;
}

export class ConnectionHealth {
  readonly #options: ConnectionHealthOptions;
  #state: FleetConnectionState;
  #isConnected = false;
  /** The error reply to the last command; undefined after a normal reply. */
  #lastErrorReply: RedisFault | undefined;
  /** Faults reported since the last connection: two that alternate are two log lines, not one per attempt. */
  readonly #reportedFaults = new Set<string>();

  constructor(options: ConnectionHealthOptions) {
    this.#options = options;
    const sinceWallAt = options.clock.wallNow();
    this.#state = { state: 'disconnected', connected: false, fault: undefined, sinceWallAt };
  }

  state(): FleetConnectionState {
    return this.#state;
  }

  /** The connection is open and gives replies in time. */
  recordConnected(): void {
    this.#isConnected = true;
    // After an error reply only a normal reply shows that commands work again.
    if (this.#lastErrorReply === undefined) this.#transitionToConnected();
  }

  recordDisconnected(fault: RedisFault): void {
    this.#isConnected = false;
    if (fault !== this.#lastErrorReply) this.#lastErrorReply = undefined;
    this.#transitionToLost(fault);
  }

  /** The connection is open, and its replies are late. */
  recordDegraded({ late, commands, medianLateMs }: LateReplies): void {
    this.#isConnected = false;
    if (this.#state.state === 'degraded') return;
    const { timeoutMs, observe } = this.#options;
    const share = `${late} of the last ${commands} commands had no reply within ${timeoutMs} ms`;
    const median = medianLateMs === undefined ? '' : `; median of late replies ${Math.round(medianLateMs)} ms`;
    const detail = `Redis replies too late: ${share}${median}: raise fleet.timeoutMs or place Redis nearer`;
    this.#change('degraded', detail);
    if (this.#isFirstReport(DEGRADED)) observe({ kind: 'fleet-degraded', detail });
  }

  /** @param fault the error reply; undefined for a normal one */
  recordReply(fault: RedisFault | undefined): void {
    this.#lastErrorReply = fault;
    if (fault !== undefined) this.#transitionToLost(fault);
    else if (this.#isConnected) this.#transitionToConnected();
  }

  #transitionToConnected(): void {
    if (this.#state.connected) return;
    const wasDegraded = this.#reportedFaults.has(DEGRADED);
    const detail = wasDegraded ? `Redis replies within ${this.#options.timeoutMs} ms again` : undefined;
    this.#change('connected', undefined);
    this.#reportedFaults.clear();
    this.#options.observe({ kind: 'fleet-joined', ...(detail !== undefined && { detail }) });
  }

  #transitionToLost(fault: RedisFault): void {
    const detail = `Redis ${fault.message}`;
    if (this.#state.state === 'disconnected' && detail === this.#state.fault) return;
    this.#change('disconnected', detail);
    if (this.#isFirstReport(detail)) this.#options.observe({ kind: 'fleet-lost', detail });
  }

  #change(state: FleetConnectionState['state'], fault: string | undefined): void {
    const sinceWallAt = this.#options.clock.wallNow();
    this.#state = { state, connected: state === 'connected', fault, sinceWallAt };
  }

  #isFirstReport(fault: string): boolean {
    const isFirst = !this.#reportedFaults.has(fault);
    this.#reportedFaults.add(fault);
    return isFirst;
  }
}
