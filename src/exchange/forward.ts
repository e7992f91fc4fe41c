/**
 * One request that passed the guard, from token to relayed response. A usable token comes first, so that a broken login fails fast and
 * fills no queue. Only what is not there yet is awaited: most requests reach the upstream in the turn of the event loop in which
 * they came. What a step does is in request-sender.ts and in request-body/.
 */
import type { ServerResponse } from 'node:http';
import { describeEndpoint } from '../throttle/endpoint.ts';
import type { Ticket } from '../throttle/throttle.ts';
import { RequestSender } from './request-sender.ts';
import type { Exchange, ExchangeParts, RequestOutcome } from './exchange.ts';
import { expectsContinue, sendContinue } from './expect-continue.ts';
import { RequestBody } from './request-body/replay-body.ts';
import { isFullyReceived } from './request-body/request-receipt.ts';
import { awaitToken, throwIfAborted, toStageError, waitInStage } from './stage.ts';

/**
 * Sends a request to the upstream, again where the retry policy says so, and relays a response to the client. Resolves when the last byte of
 * the response has been handed to node:http; the listener waits for the end of the connection's write.
 * @throws SidecarError for a local reply; RequestAborted when the client has left
 */
export async function forwardRequest(parts: ExchangeParts, exchange: Exchange): Promise<RequestOutcome> {
  const { tokens, throttle, retryBudget } = parts;
  const { request, response, lifetime, queueClass, stats, tracer } = exchange;
  const body = new RequestBody(request, parts, parts.clock);
  let ticket: Ticket | undefined;
  let sender: RequestSender | undefined;
  retryBudget.recordRequest(lifetime.arrivedAt);
  lifetime.onAbort((aborted) => {
    // The queue ends the wait of a request whose deadline passes, and counts it as a time-out.
    if (aborted.reason.kind !== 'deadline') ticket?.leave(toStageError('queue', aborted));
    sender?.abort();
  });
  try {
    // This wait comes first: after a later step a request without a body would overtake this one.
    if (response.socket === null || !body.isWhole) await waitForPacket(response);
    if (tokens.current(lifetime) === undefined) await awaitToken(tokens, lifetime, tracer);
    throwIfAborted(lifetime, 'token');
    const awaitsBody = !body.isWhole && (expectsContinue(request) || !isFullyReceived(request));
    const endpoint = describeEndpoint(request.method ?? 'GET', exchange.path);
    ticket = throttle.enter(lifetime.deadlineAt, queueClass, awaitsBody, endpoint);
    if (awaitsBody) await receiveBody(exchange, ticket, body);
    sender = new RequestSender(parts, exchange, ticket, body);
    for (;;) {
      const attempt = sender.tryTakePermit() ?? (await sender.waitForPermit());
      const result = await sender.send(attempt);
      attempt.release(result);
      if (result.kind === 'relayed') return { kind: 'relayed', status: result.head.status, fault: result.fault };
      await sender.prepareRetry(attempt, result);
    }
  } catch (error) {
    // By the next microtask node:http has parsed the end of a request that came in one packet: its connection can stay open.
    if (ticket === undefined) await Promise.resolve();
    // A response is handed over at once, so that the cleanup below may follow.
    const outcome = sender?.relayLastResult(error);
    if (outcome === undefined) throw error;
    return outcome;
  } finally {
    ticket?.leave();
    stats.queuedMs = ticket?.waitedMs ?? 0;
    stats.requestBytes = body.receivedBytes;
    sender?.dispose();
    body.dispose();
  }
}

/** Resolves when node:http has parsed what came in one packet with the head. */
async function waitForPacket(response: ServerResponse): Promise<void> {
  // A pipelined request must not overtake the one before it, whose body may be there and not read yet (RFC 9112 §9.3.2).
  if (response.socket === null) await new Promise(setImmediate);
}

/**
 * Resolves when a request whose body is still coming may ask for a permit. The body is then in the replay buffer, or received by node:http and read when it is sent, or too
 * large for the buffer and streamed.
 * A client that expects 100 (Continue) gets it when its body may be read.
 */
async function receiveBody(exchange: Exchange, ticket: Ticket, body: RequestBody): Promise<void> {
  const { request, response, lifetime, tracer } = exchange;
  const needsContinue = expectsContinue(request);
  for (;;) {
    throwIfAborted(lifetime, 'queue');
    if (!needsContinue && isFullyReceived(request)) {
      ticket.recordBodyEnd();
      return;
    }
    if (ticket.hasBodySlot) break;
    await waitForBodySlot(exchange, ticket, needsContinue ? undefined : body);
  }
  if (needsContinue) sendContinue(response);
  await waitInStage('body', body.read(lifetime, ticket), tracer);
}

/** @param body one that is received meanwhile needs no place for being read */
async function waitForBodySlot({ tracer }: Exchange, ticket: Ticket, body: RequestBody | undefined): Promise<void> {
  const stop = body?.onFullyReceived(() => ticket.recordBodyEnd());
  tracer?.startWait('queue');
  try {
    await ticket.waitForBodySlot();
  } finally {
    stop?.();
    tracer?.endWait();
  }
}
