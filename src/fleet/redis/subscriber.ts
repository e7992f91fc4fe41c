/**
 * Receives the messages that scripts publish to all replicas (PUBLISH), over a connection of its own: in RESP 2 a subscribed
 * connection cannot send. Messages are missed while it is down; the next quota exchange returns the same state.
 */
import type { EventObserver } from '../../telemetry/events.ts';
import { toRedisFault } from './redis-fault.ts';
import { ReconnectingConnection, type ReconnectingConnectionOptions } from './reconnecting-connection.ts';

interface SubscriberOptions extends Pick<ReconnectingConnectionOptions, 'open' | 'clock' | 'random'> {
  readonly observe: EventObserver;
}

/** Connects once it has been started and has a channel. Warns once if the server rejects SUBSCRIBE. */
export class Subscriber {
  readonly #connection: ReconnectingConnection;
  readonly #listeners = new Map<string, (message: string) => void>();
  readonly #observe: EventObserver;
  #isStarted = false;
  #hasWarned = false;

  constructor({ observe, ...options }: SubscriberOptions) {
    this.#observe = observe;
    this.#connection = new ReconnectingConnection({
      ...options,
      onConnected: () => {
        for (const channel of this.#listeners.keys()) this.#sendSubscribe(channel);
      },
      // The script client reports the state of Redis.
      onDisconnected: () => undefined,
    });
  }

  subscribe(channel: string, onMessage: (message: string) => void): void {
    this.#listeners.set(channel, onMessage);
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
    const onMessage = (message: string): void => this.#listeners.get(channel)?.(message);
    current?.subscribe(channel, onMessage).catch((error: unknown) => {
      const { replyCode } = toRedisFault(error);
      // Without an error reply the connection was lost, which the script client reports.
      if (replyCode === undefined || this.#hasWarned) return;
      this.#hasWarned = true;
      const message = `Redis refuses SUBSCRIBE (${replyCode}): pauses of other replicas arrive with the next exchange only`;
      this.#observe({ kind: 'warning', message });
    });
  }
}
