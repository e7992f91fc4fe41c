/**
 * Hears what scripts tell all replicas at once (PUBLISH), over a connection of its own: one that listens can send nothing else
 * (RESP 2). Whatever is told while it is down is missed, and found out by asking.
 */
import type { Clock, Random } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { toRedisFault } from './redis-fault.ts';
import type { RedisFault } from './redis-fault.ts';
import type { RedisConnection } from './redis-connection.ts';
import { ReconnectingConnection } from './reconnecting-connection.ts';

export interface SubscriberOptions {
  /** Opens one connection within a bounded time, or rejects with a RedisFault. */
  readonly open: () => Promise<RedisConnection>;
  readonly clock: Clock;
  readonly random: Random;
  /** Told once when the server lets nobody listen. */
  readonly observe: EventObserver;
}

/** Connects when there is something to listen for and it has been started. */
export class Subscriber {
  readonly #connection: ReconnectingConnection;
  readonly #listeners = new Map<string, (message: string) => void>();
  readonly #observe: EventObserver;
  #isStarted = false;
  #hasWarned = false;

  constructor({ open, clock, random, observe }: SubscriberOptions) {
    this.#observe = observe;
    this.#connection = new ReconnectingConnection({
      open,
      clock,
      random,
      onConnected: () => {
        for (const channel of this.#listeners.keys()) this.#sendSubscribe(channel);
      },
      // Of the connection the fleet's own tells.
      onDisconnected: () => undefined,
    });
  }

  subscribe(channel: string, hear: (message: string) => void): void {
    this.#listeners.set(channel, hear);
    if (this.#isStarted) this.start();
    this.#sendSubscribe(channel);
  }

  start(): void {
    this.#isStarted = true;
    if (this.#listeners.size > 0) this.#connection.start();
  }

  close(): void {
    this.#connection.close();
  }

  #sendSubscribe(channel: string): void {
    const { current } = this.#connection;
    const hear = (message: string): void => this.#listeners.get(channel)?.(message);
    current?.subscribe(channel, hear).catch((error: unknown) => {
      this.#warnOnErrorReply(toRedisFault(error));
    });
  }

  /** Nothing depends on it: each exchange tells the same, later. */
  #warnOnErrorReply(fault: RedisFault): void {
    // Of an end of the connection the fleet's own tells.
    if (fault.replyCode === undefined || this.#hasWarned) return;
    this.#hasWarned = true;
    const message = `Redis refuses SUBSCRIBE (${fault.replyCode}): pauses of other replicas are heard of with the next exchange only`;
    this.#observe({ kind: 'warning', message });
  }
}
