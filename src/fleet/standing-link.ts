/**
 * Keeps one connection standing: opens it in the background, and anew after every end, with jittered backoff. Whoever asks for it
 * gets the one that stands or none, and never waits. What is sent over it is the fleet's.
 */
import type { Cancel, Clock, Random } from '../platform/clock.ts';
import { nameFault } from './fault.ts';
import type { RedisFault } from './fault.ts';
import type { Link } from './link.ts';

export interface StandingLinkOptions {
  /** Opens one connection within a bounded time, or rejects with a RedisFault. */
  readonly open: () => Promise<Link>;
  readonly clock: Clock;
  readonly random: Random;
  readonly onUp: () => void;
  /** It has ended, or could not be opened; another attempt is planned. */
  readonly onDown: (fault: RedisFault) => void;
}

const FIRST_BACKOFF_MS = 100;
/** With the time that one attempt may take, well below the five seconds within which a fleet is to be joined again. */
const LONGEST_BACKOFF_MS = 2000;

export class StandingLink {
  readonly #options: StandingLinkOptions;
  #link: Link | undefined;
  #upAt = 0;
  #attempts = 0;
  #cancelRetry: Cancel | undefined;
  #isClosed = false;

  constructor(options: StandingLinkOptions) {
    this.#options = options;
  }

  /** The connection that stands, if one does. */
  get link(): Link | undefined {
    return this.#link;
  }

  /** Begins; later calls do nothing. */
  start(): void {
    if (this.#attempts === 0) void this.#attempt();
  }

  /** Gives a connection up that is of no use any more; another is opened. */
  drop(link: Link, fault: RedisFault): void {
    if (link !== this.#link) return;
    link.destroy();
    this.#link = undefined;
    // One that comes up and is dropped at once, time and again, is no better than one that does not come up.
    if (this.#options.clock.now() - this.#upAt >= LONGEST_BACKOFF_MS) this.#attempts = 0;
    this.#planRetry(fault);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelRetry?.();
    this.#link?.destroy();
    this.#link = undefined;
  }

  async #attempt(): Promise<void> {
    this.#attempts += 1;
    try {
      this.#stand(await this.#options.open());
    } catch (error) {
      if (!this.#isClosed) this.#planRetry(nameFault(error));
    }
  }

  #stand(link: Link): void {
    if (this.#isClosed) {
      link.destroy();
      return;
    }
    this.#link = link;
    this.#upAt = this.#options.clock.now();
    void link.ended.then((fault) => this.drop(link, fault));
    this.#options.onUp();
  }

  #planRetry(fault: RedisFault): void {
    const { clock, random, onDown } = this.#options;
    const ceilingMs = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** this.#attempts);
    this.#cancelRetry = clock.after((ceilingMs * (1 + random())) / 2, () => void this.#attempt());
    onDown(fault);
  }
}
