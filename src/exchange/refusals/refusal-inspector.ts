/** Reads the beginning of a response body for the texts that make it a rate-limit refusal. */
import type { BodyInspector, ResponseDestination } from '../../upstream/response-receiver.ts';
import type { ReplayMemory } from '../request-body/replay-body.ts';
import type { RequestLifetime } from '../request-lifetime.ts';

/** A text is found if it ends within so many bytes. */
const INSPECTED_MAX_BYTES = 64 * 1024;

export interface RefusalInspectorOptions {
  readonly texts: readonly Buffer[];
  readonly lifetime: RequestLifetime;
  readonly memory: Pick<ReplayMemory, 'forceTake' | 'giveBack'>;
  /** Decides where the response goes; called once, unless the inspection is cancelled. */
  readonly decide: (isRefusal: boolean) => ResponseDestination;
}

export class RefusalInspector implements BodyInspector {
  readonly #options: RefusalInspectorOptions;
  /** A text that begins in one chunk and ends in the next is found in the two together. */
  readonly #overlapBytes: number;
  #overlap: Buffer = Buffer.alloc(0);
  #receivedBytes = 0;
  #onDecided: ((destination: ResponseDestination) => void) | undefined;

  constructor(options: RefusalInspectorOptions) {
    this.#options = options;
    this.#overlapBytes = Math.max(...options.texts.map(({ length }) => length)) - 1;
  }

  begin(onDecided: (destination: ResponseDestination) => void): void {
    this.#onDecided = onDecided;
    // The head came in time: at the deadline it goes to the client, and the rest follows.
    this.#options.lifetime.onDeadline = () => this.#decide(false);
  }

  write(chunk: Buffer): void {
    const { texts, memory } = this.#options;
    const inspected = chunk.subarray(0, INSPECTED_MAX_BYTES - this.#receivedBytes);
    this.#receivedBytes += chunk.length;
    memory.forceTake(chunk.length);
    const searched = Buffer.concat([this.#overlap, inspected]);
    this.#overlap = searched.subarray(Math.max(0, searched.length - this.#overlapBytes));
    if (texts.some((text) => searched.includes(text))) this.#decide(true);
    else if (this.#receivedBytes >= INSPECTED_MAX_BYTES) this.#decide(false);
  }

  end(): void {
    this.#decide(false);
  }

  cancel(): void {
    this.#onDecided = undefined;
    const { lifetime, memory } = this.#options;
    lifetime.onDeadline = undefined;
    memory.giveBack(this.#receivedBytes);
  }

  #decide(isRefusal: boolean): void {
    const onDecided = this.#onDecided;
    this.cancel();
    onDecided?.(this.#options.decide(isRefusal));
  }
}
