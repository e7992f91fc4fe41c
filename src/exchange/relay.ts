/**
 * Streams an upstream's answer to the client through node:http. An answer that breaks off upstream breaks off for the
 * client as well: it is never ended cleanly, not even towards HTTP/1.0, where only a reset tells (RFC 9112 §8).
 */
import type { ServerResponse } from 'node:http';
import type { AnswerHead, AnswerTarget, HeldAnswer } from '../upstream/attempt.ts';
import { withoutLength } from '../upstream/fields.ts';

export interface RelayTerms {
  /** Turns the upstream's fields into the client's. */
  readonly fields: (head: AnswerHead) => string[];
  /** Called when the head is about to be written. */
  readonly onBegin: () => void;
  /** Called when the answer breaks off, before the client can notice. */
  readonly onCut: () => void;
}

const WRITABLE_PHRASE = /^[\t\x20-\x7e\x80-\xff]+$/;

export class Relay implements AnswerTarget {
  /** Body bytes given to the client. */
  sentBytes = 0;
  readonly #response: ServerResponse;
  readonly #terms: RelayTerms;

  constructor(response: ServerResponse, terms: RelayTerms) {
    this.#response = response;
    this.#terms = terms;
  }

  begin(head: AnswerHead): void {
    const response = this.#response;
    const kept = this.#terms.fields(head);
    const fields = head.status === 204 ? withoutLength(kept) : kept;
    // An upload that nobody reads any more would be taken for the next request.
    if (!response.req.complete) response.shouldKeepAlive = false;
    // A phrase that node:http would not write means nothing to anybody (RFC 9112 §4): the usual one takes its place.
    if (WRITABLE_PHRASE.test(head.statusText)) response.writeHead(head.status, head.statusText, fields);
    else response.writeHead(head.status, fields);
    this.#terms.onBegin();
    // A first chunk that is at hand shares a packet with the head; a head that waits for its body goes now.
    setImmediate(() => {
      if (!response.writableEnded && this.sentBytes === 0) response.flushHeaders();
    });
  }

  write(chunk: Buffer): boolean {
    this.sentBytes += chunk.length;
    return this.#response.write(chunk);
  }

  onDrain(resume: () => void): void {
    this.#response.once('drain', resume);
  }

  end(): void {
    this.#response.end();
  }

  cut(): void {
    const { socket } = this.#response;
    this.#terms.onCut();
    if (this.#response.req.httpVersion === '1.0') socket?.resetAndDestroy();
    else this.#response.destroy();
  }
}

/** Gives the client an answer that was held back. */
export function relayHeld(answer: HeldAnswer, target: Relay): void {
  target.begin(answer.head);
  if (answer.body.length > 0) target.write(answer.body);
  target.end();
}
