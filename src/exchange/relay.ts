/**
 * Streams an upstream's answer to the client through node:http. An answer that breaks off upstream breaks off for the
 * client as well: it is never ended cleanly, not even towards HTTP/1.0, where only a reset tells (RFC 9112 §8).
 */
import type { ServerResponse } from 'node:http';
import { SidecarError } from '../errors.ts';
import type { AnswerHead } from '../upstream/answer-head.ts';
import type { AnswerTarget, HeldAnswer } from '../upstream/attempt.ts';
import { endToEndResponseFields, fieldOf, withoutLength } from '../upstream/fields.ts';
import { rewriteLocation } from '../upstream/location.ts';
import type { Exchange, ExchangeParts } from './exchange.ts';
import { lingerThenEnd } from './linger.ts';
import { withAnswerFields } from './watch.ts';

/** A first chunk that is at hand shares a packet with the head; heads that wait for their bodies go when all that is at hand has been read. */
let firstHead: Relay | undefined;
const SETTLED = Promise.resolve();

/** In a microtask, without what queueMicrotask makes for each. */
function flushSoon(relay: Relay): void {
  if (firstHead === undefined) void SETTLED.then(flushHeads);
  relay.nextHead = firstHead;
  firstHead = relay;
}

function flushHeads(): void {
  let relay = firstHead;
  firstHead = undefined;
  while (relay !== undefined) {
    relay.flushHead();
    // One that streams for hours must not keep the others.
    const next: Relay | undefined = relay.nextHead;
    relay.nextHead = undefined;
    relay = next;
  }
}

/** A body up to this goes out in one piece with its head: to copy it costs less than a second buffer to write. */
const JOINED_MAX_BYTES = 16 * 1024;
/** How much is read away of an upload that the upstream has answered before its end. */
const ANSWERED_BYTES = 64 * 1024 * 1024;

type RelayParts = Pick<ExchangeParts, 'upstream' | 'clientPath' | 'clock'>;

export class Relay implements AnswerTarget {
  /** Body bytes given to the client. */
  sentBytes = 0;
  /** Whose head waits, too. */
  nextHead: Relay | undefined;
  /** As the upstream declared it; NaN when it did not. */
  #declaredBytes = NaN;
  #isEnded = false;
  readonly #exchange: Exchange;
  readonly #parts: RelayParts;
  readonly #response: ServerResponse;

  constructor(exchange: Exchange, parts: RelayParts) {
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
    if (head.statusText !== '') response.writeHead(head.status, head.statusText, fields);
    else response.writeHead(head.status, fields);
    this.#exchange.lifeline.meetDeadline();
    flushSoon(this);
  }

  /** Sends a head whose body has not begun to come. */
  flushHead(): void {
    if (!this.#response.writableEnded && this.sentBytes === 0) this.#response.flushHeaders();
  }

  write(chunk: Buffer): boolean {
    this.sentBytes += chunk.length;
    if (this.sentBytes !== this.#declaredBytes) return this.#response.write(chunk);
    if (!this.#response.req.complete) {
      this.#response.write(chunk);
      this.end();
      return true;
    }
    // The last of it. Node:http joins a head that has not gone with a text, and only with that.
    if (chunk.length <= JOINED_MAX_BYTES) this.#response.end(chunk.toString('latin1'), 'latin1');
    else this.#response.end(chunk);
    return true;
  }

  onDrain(resume: () => void): void {
    this.#response.once('drain', resume);
  }

  end(): void {
    const response = this.#response;
    if (response.writableEnded || this.#isEnded) return;
    this.#isEnded = true;
    // A client that writes before it reads would meet a closed connection, and never see what it was told.
    if (response.req.complete) response.end();
    else lingerThenEnd(response.req, response, this.#parts.clock, ANSWERED_BYTES);
  }

  cut(): void {
    const { socket } = this.#response;
    // The connection that is closed now is not one that the client has left.
    const error = new SidecarError('UPSTREAM_RESET', 'the answer broke off');
    this.#exchange.lifeline.end({ kind: 'failed', error });
    if (this.#response.req.httpVersion === '1.0') socket?.resetAndDestroy();
    else destroyInTurn(this.#response);
  }

  #relocate(location: string): string {
    const { upstream, clientPath } = this.#parts;
    return rewriteLocation(upstream.baseUrl, this.#exchange.path, location, clientPath);
  }
}

/**
 * Ends a response, and its connection, where it stands. One that is behind another of its connection waits for its turn: node:http would
 * forget the connection of a response that is destroyed without having one.
 */
export function destroyInTurn(response: ServerResponse): void {
  if (response.socket !== null || response.destroyed) response.destroy();
  else response.once('socket', () => response.destroy());
}

/** Gives the client an answer that was held back; one that broke off breaks off. */
export function relayHeld({ head, body, fault }: HeldAnswer, target: Relay): void {
  target.begin(head);
  if (body.length > 0) target.write(body);
  if (fault === undefined) {
    target.end();
    return;
  }
  target.flushHead();
  // Node:http writes in the next turn what it was given in this one: cut at once, the client would get nothing.
  setImmediate(() => target.cut());
}
