/**
 * Hears what scripts tell all replicas at once (PUBLISH), over a connection of its own: one that listens can send nothing else
 * (RESP 2). Whatever is told while it is down is missed, and found out by asking.
 */
import type { Clock, Random } from '../clock.ts';
import type { Link } from './link.ts';
import { StandingLink } from './standing-link.ts';

export interface EarOptions {
  /** Opens one connection within a bounded time, or rejects with a RedisFault. */
  readonly open: () => Promise<Link>;
  readonly clock: Clock;
  readonly random: Random;
}

/** Connects when there is something to listen for and it has been started. */
export class Ear {
  readonly #standing: StandingLink;
  readonly #hearers = new Map<string, (message: string) => void>();
  #isStarted = false;

  constructor({ open, clock, random }: EarOptions) {
    this.#standing = new StandingLink({
      open,
      clock,
      random,
      onUp: () => {
        for (const channel of this.#hearers.keys()) this.#subscribe(channel);
      },
      // Of the connection the fleet's own tells.
      onDown: () => undefined,
    });
  }

  listen(channel: string, hear: (message: string) => void): void {
    this.#hearers.set(channel, hear);
    if (this.#isStarted) this.start();
    this.#subscribe(channel);
  }

  start(): void {
    this.#isStarted = true;
    if (this.#hearers.size > 0) this.#standing.start();
  }

  close(): void {
    this.#standing.close();
  }

  #subscribe(channel: string): void {
    const { link } = this.#standing;
    const hear = (message: string): void => this.#hearers.get(channel)?.(message);
    // A server that lets nobody listen is no fault: each exchange tells the same.
    link?.subscribe(channel, hear).catch(() => undefined);
  }
}
