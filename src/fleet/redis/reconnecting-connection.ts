/**
 * Keeps one connection standing: opens it in the background, and anew after every end, with jittered backoff. Whoever asks for it
 * gets the one that stands or none, and never waits. What is sent over it is the fleet's.
 */
import type { Cancel, Clock, Random } from '../../platform/clock.ts';
import { toRedisFault } from './redis-fault.ts';
import type { RedisFault } from './redis-fault.ts';
import type { RedisConnection } from './redis-connection.ts';

export interface ReconnectingConnectionOptions {
  /** Opens one connection within a bounded time, or rejects with a RedisFault. */
  readonly open: () => Promise<RedisConnection>;
  readonly clock: Clock;
  readonly random: Random;
  readonly onConnected: () => void;
  /** It has ended, or could not be opened; another attempt is planned. */
  readonly onDisconnected: (fault: RedisFault) => void;
}

const INITIAL_BACKOFF_MS = 100;
/** With the time that one attempt may take, well below the five seconds within which a fleet is to be joined again. */
const MAX_BACKOFF_MS = 2000;

export class ReconnectingConnection {
  readonly #options: ReconnectingConnectionOptions;
  #current: RedisConnection | undefined;
  #connectedAt = 0;
  #attempts = 0;
  #cancelRetry: Cancel | undefined;
  #isClosed = false;

  constructor(options: ReconnectingConnectionOptions) {
    this.#options = options;
  }

  /** The connection that stands, if one does. */
  get current(): RedisConnection | undefined {
    return this.#current;
  }

  /** Begins; later calls do nothing. */
  start(): void {
    if (this.#attempts === 0) void this.#connect();
  }

  /** Gives a connection up that is of no use any more; another is opened. */
  drop(link: RedisConnection, fault: RedisFault): void {
    if (link !== this.#current) return;
    link.destroy();
    this.#current = undefined;
    // One that comes up and is dropped at once, time and again, is no better than one that does not come up.
    if (this.#options.clock.now() - this.#connectedAt >= MAX_BACKOFF_MS) this.#attempts = 0;
    this.#scheduleRetry(fault);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelRetry?.();
    this.#current?.destroy();
    this.#current = undefined;
  }

  async #connect(): Promise<void> {
    this.#attempts += 1;
    try {
      this.#adopt(await this.#options.open());
    } catch (error) {
      if (!this.#isClosed) this.#scheduleRetry(toRedisFault(error));
    }
  }

  #adopt(link: RedisConnection): void {
    if (this.#isClosed) {
      link.destroy();
      return;
    }
    this.#current = link;
    this.#connectedAt = this.#options.clock.now();
    void link.ended.then((fault) => this.drop(link, fault));
    this.#options.onConnected();
  }

  #scheduleRetry(fault: RedisFault): void {
    const { clock, random, onDisconnected } = this.#options;
    const ceilingMs = Math.min(MAX_BACKOFF_MS, INITIAL_BACKOFF_MS * 2 ** this.#attempts);
    this.#cancelRetry = clock.after((ceilingMs * (1 + random())) / 2, () => void this.#connect());
    onDisconnected(fault);
  }
}
