/**
 * Hears what scripts tell all replicas at once (PUBLISH), over a connection of its own: one that listens can send nothing else
 * (RESP 2). Whatever is told while it is down is missed, and found out by asking.
 */
import type { Clock, Random } from '../platform/clock.ts';
import type { Observe } from '../telemetry/events.ts';
import { nameFault } from './fault.ts';
import type { RedisFault } from './fault.ts';
import type { Link } from './link.ts';
import { StandingLink } from './standing-link.ts';

export interface EarOptions {
  /** Opens one connection within a bounded time, or rejects with a RedisFault. */
  readonly open: () => Promise<Link>;
  readonly clock: Clock;
  readonly random: Random;
  /** Told once when the server lets nobody listen. */
  readonly observe: Observe;
}

/** Connects when there is something to listen for and it has been started. */
export class Ear {
  readonly #standing: StandingLink;
  readonly #hearers = new Map<string, (message: string) => void>();
  readonly #observe: Observe;
  #isStarted = false;
  #hasWarned = false;

  constructor({ open, clock, random, observe }: EarOptions) {
    this.#observe = observe;
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
    link?.subscribe(channel, hear).catch((error: unknown) => {
      this.#noteRefusal(nameFault(error));
    });
  }

  /** Nothing depends on it: each exchange tells the same, later. */
  #noteRefusal(fault: RedisFault): void {
    // Of an end of the connection the fleet's own tells.
    if (fault.reply === undefined || this.#hasWarned) return;
    this.#hasWarned = true;
    const message = `Redis refuses SUBSCRIBE (${fault.reply}): pauses of other replicas are heard of with the next exchange only`;
    this.#observe({ kind: 'warning', message });
  }
}
