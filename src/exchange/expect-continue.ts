/** The interim response 100 (Continue) of RFC 9110 §10.1.1. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { declaredLength } from './request-body/request-receipt.ts';

/** HTTP/1.0 has no interim responses. */
export function expectsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' && /^100-continue$/i.test(headers.expect ?? '');
}

/** For a request that expects it. A pipelined one gets it in its turn, unless its final response is there by then. */
export function sendContinue(response: ServerResponse): void {
  if (response.socket !== null) response.writeContinue();
  // Node:http would put the head of the final response in front of an interim response that waits in the same queue.
  else response.once('socket', () => response.headersSent || response.writeContinue());
}

/** Undocumented: with it, node:http closes the connection behind each final response that no 100 came before. */
type ExpectingResponse = ServerResponse & { _expect_continue?: boolean };

/**
 * To be called first for a request that expects a 100. Also one without a body gets it: the JDK before 17.0.17 waits for it without end
 * (JDK-8286171). RFC 9110 does not ask for it.
 */
export function acceptExpectation(request: IncomingMessage, response: ExpectingResponse): void {
  // A whole request has nothing unread behind it, and the responses to later pipelined ones would be lost.
  response._expect_continue = false;
  if (declaredLength(request) === 0) sendContinue(response);
}
