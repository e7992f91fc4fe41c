/**
 * One request that passed the listener's check, from token to relayed response: ARCHITECTURE.md (One request) has the same steps by number.
 * Only what is not there yet is awaited: most requests reach the upstream in the turn of the event loop in which they came.
 */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import { SidecarError } from '../platform/errors.ts';
import type { Ticket } from '../throttle/throttle.ts';
import type { TokenUse } from '../token/token.ts';
import { Attempt } from './attempt.ts';
import { pipelinedResponses } from './connection-end.ts';
import type { Exchange, RouteContext, RequestOutcome } from './exchange.ts';
import { expectsContinue, sendContinue } from './expect-continue.ts';
import type { RequestBody } from './request-body/replay-body.ts';
import { isFullyReceived } from './request-body/request-receipt.ts';
import { RequestContext, type NotRelayed } from './request-context.ts';
import { awaitToken, throwIfAborted, toStageError, waitInStage } from './request-lifetime.ts';

/**
 * Sends a request to the upstream, again where the retry policy says so, and relays a response to the client. Resolves when the last byte of
 * the response has been handed to node:http; the listener waits for the end of the connection's write, and then records the outcome.
 * @throws SidecarError for a local reply; RequestAborted when the client has left
 */
export async function forwardRequest(routeContext: RouteContext, exchange: Exchange): Promise<RequestOutcome> {
  const { tokens, throttle, retryBudget, clock } = routeContext;
  const { request, response, lifetime, queueClass } = exchange;
  const context = new RequestContext(routeContext, exchange);
  const { body } = context;
  let now = lifetime.arrivedAt;
  retryBudget.recordRequest(now);
  lifetime.target = context;
  try {
    // This wait comes first: after a later step a request without a body would overtake this one.
    if (response.socket === null || !body.isInMemory) now = await waitForPacket(response, clock);
    // 1. A usable token, before the queue: with a broken login a request fails at once and fills no queue.
    let tokenUse = tokens.current(lifetime, now);
    if (tokenUse === undefined) now = await waitForFirstToken(routeContext, exchange);
    if (lifetime.aborted !== undefined) throw toStageError('token', lifetime.aborted);
    // 2. A ticket, which is no wait.
    const awaitsBody = !body.isInMemory && (expectsContinue(request) || !isFullyReceived(request));
    const ticket = throttle.enter(lifetime.deadlineAt, queueClass, awaitsBody, context.operation, now, context);
    context.ticket = ticket;
    if (context.hadAuthorization) routeContext.observe({ kind: 'authorization-overridden' });
    // 3. A body slot and the body, before a permit: a slow client would hold the permit.
    if (awaitsBody) {
      now = await receiveBody(exchange, ticket, body, clock);
      tokenUse = undefined;
    }
    for (;;) {
      // 4. A permit for one attempt, with the token of that moment.
      const attempt = tryTakePermit(context, ticket, now, tokenUse) ?? (await waitForPermit(context, ticket));
      // 5. The attempt. Its `onHead` reports to throttle and token source, and decides: relay the response, or hold it for a retry.
      const result = await attempt.send();
      // The response has ended, or there is none: the permit's slot in flight is free, and the attempt is recorded.
      attempt.release(result);
      if (result.kind === 'relayed') return { kind: 'relayed', status: result.head.status, fault: result.fault };
      // 6. A retry goes back to 4, where it stands at the head of the queue.
      await prepareRetry(context, attempt, result);
      now = clock.now();
      tokenUse = undefined;
    }
  } catch (error) {
    // By the next microtask node:http has parsed the end of a request that came in one packet: its connection can stay open.
    if (context.ticket === undefined) await Promise.resolve();
    // No further attempt: the result of the last one that was sent goes to the client, at once, so that the cleanup below may follow.
    const outcome = context.relayLastResult(error);
    if (outcome === undefined) throw error;
    return outcome;
  } finally {
    context.dispose();
  }
}

/** Resolves when node:http has parsed what came in one packet with the head. @returns the instant */
async function waitForPacket(response: ServerResponse, clock: Clock): Promise<number> {
  // A pipelined request must not overtake the one before it, whose body may be there and not read yet (RFC 9112 §9.3.2).
  if (response.socket === null) {
    pipelinedResponses.add(response);
    await new Promise(setImmediate);
  }
  return clock.now();
}

/** Step 1, when no token is at hand. @returns the instant at which one is */
async function waitForFirstToken({ tokens, clock }: RouteContext, { lifetime, tracer }: Exchange): Promise<number> {
  await awaitToken(tokens, lifetime, tracer);
  return clock.now();
}

/**
 * Step 3. Waits for a body slot, then reads the body into the replay buffer; one that is larger than the buffer is streamed by the attempt.
 * A body that has come to its end meanwhile needs no slot. A client that expects 100 (Continue) gets it with its slot.
 * @returns the instant at which it has been read
 */
async function receiveBody(exchange: Exchange, ticket: Ticket, body: RequestBody, clock: Clock): Promise<number> {
  const { request, response, lifetime, tracer } = exchange;
  const needsContinue = expectsContinue(request);
  for (;;) {
    throwIfAborted(lifetime, 'queue');
    if (!needsContinue && isFullyReceived(request)) {
      ticket.recordBodyEnd();
      return clock.now();
    }
    if (ticket.hasBodySlot) break;
    await waitForBodySlot(exchange, ticket, needsContinue ? undefined : body);
  }
  if (needsContinue) sendContinue(response);
  await waitInStage('body', body.read(lifetime, ticket), tracer);
  return clock.now();
}

/** @param body one that is received meanwhile needs no slot */
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

/**
 * Step 4, where a permit and a token are at hand; undefined where one of them has to be waited for.
 * @param now what the clock has just given
 * @param current the token in this turn for a call that can be repeated, as one without an unread body can; undefined: it is asked for
 */
function tryTakePermit(
  context: RequestContext,
  ticket: Ticket,
  now: number,
  current: TokenUse | undefined,
): Attempt | undefined {
  const { routeContext, exchange, body } = context;
  if (exchange.lifetime.aborted !== undefined) return undefined;
  const isRepeatable = body.isInMemory && routeContext.retry.on401;
  const tokenUse = current !== undefined && isRepeatable ? current : routeContext.tokens.current(context, now);
  const permit = tokenUse && ticket.tryTakePermit(now);
  return permit && new Attempt(context, permit, tokenUse);
}

/**
 * Step 4, otherwise: waits until there is a token and a permit. The current token is read the moment the permit is granted.
 * @throws SidecarError; RequestAborted when the client has left
 */
async function waitForPermit(context: RequestContext, ticket: Ticket): Promise<Attempt> {
  const { tokens } = context.routeContext;
  const { lifetime, tracer } = context.exchange;
  for (;;) {
    if (tokens.current(context) === undefined) await awaitToken(tokens, lifetime, tracer, context);
    // An aborted request must not start a wait.
    throwIfAborted(lifetime, 'queue');
    const permit = await waitInStage('queue', ticket.waitForPermit(), tracer);
    const tokenUse = lifetime.aborted === undefined ? tokens.current(context) : undefined;
    if (tokenUse !== undefined) return new Attempt(context, permit, tokenUse);
    // The token expired or was refused while the request waited: the permit is not spent until there is one again.
    permit.cancel();
  }
}

/**
 * Step 6. Carries out the decision that was made at the head of the response (it is made here only where no head came): waits for what the
 * next attempt needs before its permit.
 * @throws the reason why none follows
 */
async function prepareRetry(context: RequestContext, attempt: Attempt, result: NotRelayed): Promise<void> {
  const { lifetime, tracer } = context.exchange;
  const retry = attempt.settle(result);
  switch (retry.kind) {
    case 'await-permit':
      // A 429: the throttle paused all requests at the head of the response, or this one alone has a delay. The permit comes when the pause is
      // over, and costs no retry budget.
      return retry.delayMs > 0 ? waitInStage('queue', lifetime.sleep(retry.delayMs), tracer) : undefined;
    case 'refresh-token':
      // A 401: at the head of the response its token was invalidated and a refresh was started. All callers wait for it; it costs no retry budget.
      return waitForNewerToken(context, attempt.tokenUse);
    case 'back-off':
      // 503, reset and the like: the decision has taken this retry out of the budget.
      return waitInStage('upstream', lifetime.sleep(retry.delayMs), tracer);
  }
}

/** @throws SidecarError TOKEN_UNAVAILABLE: the 401 goes to the client */
async function waitForNewerToken(context: RequestContext, rejected: TokenUse): Promise<void> {
  const { routeContext, exchange } = context;
  const wait = exchange.lifetime.withAbortSignal((signal) => routeContext.tokens.waitForReplacement(rejected, signal));
  const hasReplacement = await waitInStage('token', wait, exchange.tracer);
  // A request is replayed once.
  context.hasReplayedAfter401 = true;
  if (!hasReplacement) throw new SidecarError('TOKEN_UNAVAILABLE', 'no newer access token is available');
}
