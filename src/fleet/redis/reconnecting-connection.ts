/**
 * Keeps one connection open: opens it in the background, and again after every loss, with jittered backoff. Callers get the
 * open connection or none, and never wait.
 */
import type { Cancel, Clock, Random } from '../../platform/clock.ts';
import { toRedisFault, type RedisFault } from './redis-fault.ts';
import type { RedisConnection } from './redis-connection.ts';

export interface ReconnectingConnectionOptions {
  /** Opens one connection within a bounded time, or rejects with a RedisFault. */
  readonly open: () => Promise<RedisConnection>;
  readonly clock: Clock;
  readonly random: Random;
  readonly onConnected: () => void;
  /** The connection was lost or could not be opened; another attempt is scheduled. */
  readonly onDisconnected: (fault: RedisFault) => void;
}

const INITIAL_BACKOFF_MS = 100;
/** Together with the time-out of one attempt well below 5 s, the longest time to rejoin a fleet. */
const MAX_BACKOFF_MS = 2000;
/** After a fault that only a change of the server or of its address ends. */
const LASTING_FAULT_BACKOFF_MS = 30_000;

export class ReconnectingConnection {
  readonly #options: ReconnectingConnectionOptions;
  /** The open connection. Read only. */
  current: RedisConnection | undefined;
  #connectedAt = 0;
  #attempts = 0;
  #cancelRetry: Cancel | undefined;
  #isClosed = false;

  constructor(options: ReconnectingConnectionOptions) {
    this.#options = options;
  }

  /** Starts to connect; later calls do nothing. */
  start(): void {
    if (this.#attempts === 0) void this.#connect();
  }

  /** Closes a connection that is of no more use; another one is opened. */
  drop(connection: RedisConnection, fault: RedisFault): void {
    if (connection !== this.current) return;
    connection.destroy();
    this.current = undefined;
    // A connection that is dropped right after it opened counts as a failed attempt.
    if (this.#options.clock.now() - this.#connectedAt >= MAX_BACKOFF_MS) this.#attempts = 0;
    this.#scheduleRetry(fault);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelRetry?.();
    this.current?.destroy();
    this.current = undefined;
  }

  async #connect(): Promise<void> {
    this.#attempts += 1;
    try {
      this.#adopt(await this.#options.open());
    } catch (error) {
      if (!this.#isClosed) this.#scheduleRetry(toRedisFault(error));
    }
  }

  #adopt(connection: RedisConnection): void {
    if (this.#isClosed) {
      connection.destroy();
      return;
    }
    this.current = connection;
    this.#connectedAt = this.#options.clock.now();
    void connection.ended.then((fault) => this.drop(connection, fault));
    this.#options.onConnected();
  }

  #scheduleRetry(fault: RedisFault): void {
    const { clock, random, onDisconnected } = this.#options;
    const shortMs = Math.min(MAX_BACKOFF_MS, INITIAL_BACKOFF_MS * 2 ** this.#attempts);
    const ceilingMs = fault.isLasting ? LASTING_FAULT_BACKOFF_MS : shortMs;
    this.#cancelRetry = clock.after((ceilingMs * (1 + random())) / 2, () => void this.#connect());
    onDisconnected(fault);
  }
}
