/**
 * The upstream's last word: an answer that another attempt may follow, kept for when nothing better comes. Its memory counts with the
 * replay buffers.
 */
import type { HeldAnswer } from '../upstream/attempt-terms.ts';
import type { Relayed } from './exchange.ts';
import { relayHeld, type Relay } from './relay.ts';
import type { ReplayMemory } from './request-body/replay-body.ts';

export class LastWord {
  readonly #memory: ReplayMemory;
  #answer: HeldAnswer | undefined;

  constructor(memory: ReplayMemory) {
    this.#memory = memory;
  }

  /** In the place of the one before. */
  keep(answer: HeldAnswer): void {
    this.forget();
    this.#memory.reserve(answer.body.length);
    this.#answer = answer;
  }

  /** Gives it to the client, as far as it came; undefined where there is none. */
  tell(relay: Relay): Relayed | undefined {
    const answer = this.#answer;
    if (answer === undefined) return undefined;
    relayHeld(answer, relay);
    const { head, fault } = answer;
    return { status: head.status, fault: fault === undefined ? undefined : { detail: fault, cutBy: 'upstream' } };
  }

  forget(): void {
    this.#memory.giveBack(this.#answer?.body.length ?? 0);
    this.#answer = undefined;
  }
}
