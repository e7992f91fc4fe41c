/**
 * Streams an upstream's answer to the client through node:http. An answer that breaks off upstream breaks off for the
 * client as well: it is never ended cleanly, not even towards HTTP/1.0, where only a reset tells (RFC 9112 §8).
 */
import type { ServerResponse } from 'node:http';
import { SidecarError } from '../errors.ts';
import type { AnswerHead, AnswerTarget, HeldAnswer } from '../upstream/attempt.ts';
import { endToEndResponseFields, fieldOf, withoutLength } from '../upstream/fields.ts';
import { rewriteLocation } from '../upstream/location.ts';
import type { Exchange, ExchangeParts } from './exchange.ts';
import { withAnswerFields } from './watch.ts';

const WRITABLE_PHRASE = /^[\t\x20-\x7e\x80-\xff]+$/;

/** A first chunk that is at hand shares a packet with the head; heads that wait for their bodies go when all that is at hand has been read. */
let heads: Relay[] = [];

function flushHeads(): void {
  const waiting = heads;
  heads = [];
  for (const relay of waiting) relay.flushHead();
}

/** A body up to this goes out in one piece with its head: to copy it costs less than a second buffer to write. */
const JOINED_MAX_BYTES = 16 * 1024;

export class Relay implements AnswerTarget {
  /** Body bytes given to the client. */
  sentBytes = 0;
  /** As the upstream declared it; NaN when it did not. */
  #declaredBytes = NaN;
  readonly #exchange: Exchange;
  readonly #parts: Pick<ExchangeParts, 'upstream' | 'clientPath'>;
  readonly #response: ServerResponse;

  constructor(exchange: Exchange, parts: Pick<ExchangeParts, 'upstream' | 'clientPath'>) {
    this.#exchange = exchange;
    this.#parts = parts;
    this.#response = exchange.response;
  }

  begin(head: AnswerHead): void {
    const response = this.#response;
    const { corsOrigin, watch } = this.#exchange;
    const kept = endToEndResponseFields(head.fields, (value) => this.#relocate(value), corsOrigin);
    const fields = withAnswerFields(head.status === 204 ? withoutLength(kept) : kept, watch);
    this.#declaredBytes = Number(fieldOf(fields, 'content-length') ?? NaN);
    // An upload that nobody reads any more would be taken for the next request.
    if (!response.req.complete) response.shouldKeepAlive = false;
    // A phrase that node:http would not write means nothing to anybody (RFC 9112 §4): the usual one takes its place.
    if (WRITABLE_PHRASE.test(head.statusText)) response.writeHead(head.status, head.statusText, fields);
    else response.writeHead(head.status, fields);
    this.#exchange.lifeline.meetDeadline();
    if (heads.push(this) === 1) queueMicrotask(flushHeads);
  }

  /** Sends a head whose body has not begun to come. */
  flushHead(): void {
    if (!this.#response.writableEnded && this.sentBytes === 0) this.#response.flushHeaders();
  }

  write(chunk: Buffer): boolean {
    this.sentBytes += chunk.length;
    if (this.sentBytes !== this.#declaredBytes) return this.#response.write(chunk);
    // The last of it. Node:http joins a head that has not gone with a text, and only with that.
    if (chunk.length <= JOINED_MAX_BYTES) this.#response.end(chunk.toString('latin1'), 'latin1');
    else this.#response.end(chunk);
    return true;
  }

  onDrain(resume: () => void): void {
    this.#response.once('drain', resume);
  }

  end(): void {
    if (!this.#response.writableEnded) this.#response.end();
  }

  cut(): void {
    const { socket } = this.#response;
    // The connection that is closed now is not one that the client has left.
    const error = new SidecarError('UPSTREAM_RESET', 'the answer broke off');
    this.#exchange.lifeline.end({ kind: 'failed', error });
    if (this.#response.req.httpVersion === '1.0') socket?.resetAndDestroy();
    else this.#response.destroy();
  }

  #relocate(location: string): string {
    const { upstream, clientPath } = this.#parts;
    return rewriteLocation(upstream.baseUrl, this.#exchange.path, location, clientPath);
  }
}

/** Gives the client an answer that was held back. */
export function relayHeld(answer: HeldAnswer, target: Relay): void {
  target.begin(answer.head);
  if (answer.body.length > 0) target.write(answer.body);
  target.end();
}
