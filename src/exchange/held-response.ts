/**
 * The upstream's last word: an answer that another attempt may follow, kept for when nothing better comes. Its memory counts with the
 * replay buffers.
 */
import type { BufferedResponse } from '../upstream/attempt-contract.ts';
import type { RelayedResponse } from './exchange.ts';
import { relayBuffered, type Relay } from './relay.ts';
import type { ReplayMemory } from './request-body/replay-body.ts';

export class HeldResponse {
  readonly #memory: ReplayMemory;
  #response: BufferedResponse | undefined;

  constructor(memory: ReplayMemory) {
    this.#memory = memory;
  }

  /** In the place of the one before. */
  hold(answer: BufferedResponse): void {
    this.discard();
    this.#memory.forceTake(answer.body.length);
    this.#response = answer;
  }

  /** Gives it to the client, as far as it came; undefined where there is none. */
  relayTo(relay: Relay): RelayedResponse | undefined {
    const answer = this.#response;
    if (answer === undefined) return undefined;
    relayBuffered(answer, relay);
    const { head, fault } = answer;
    return { status: head.status, fault: fault === undefined ? undefined : { detail: fault, cutBy: 'upstream' } };
  }

  discard(): void {
    this.#memory.giveBack(this.#response?.body.length ?? 0);
    this.#response = undefined;
  }
}
