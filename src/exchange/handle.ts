/**
 * The story of one request that passed the guard: a usable token first (a broken login fails fast and queues nobody),
 * then a place in the queue, then its body, then attempts until an answer streams back.
 * Faults of the sidecar's own leave as SidecarError; the listener turns them into replies.
 */
import type { IncomingMessage } from 'node:http';
import type { Exchange, ExchangeParts, Relayed } from './exchange.ts';
import { Attempts } from './attempts.ts';
import { RequestBody } from './replay-body.ts';
import { awaitToken, inStage, nameEnd } from './stage.ts';

/**
 * @throws SidecarError for every fault of the sidecar's own
 * @throws LifelineEnded (client-left) when nobody is there any more to be answered
 */
export async function handle(parts: ExchangeParts, exchange: Exchange): Promise<Relayed> {
  const { tokens, throttle, budget, clock } = parts;
  const { lifeline, request, response, standing, tally, watch } = exchange;
  // Behind another one of its connection it must not overtake that (RFC 9112 §9.3.2), whose body may be at hand but not read.
  if (response.socket === null) await new Promise(setImmediate);
  const body = new RequestBody(request, parts, clock);
  budget.recordRequest(lifeline.arrivedAt);
  try {
    if (tokens.current() === undefined) await awaitToken(tokens, lifeline, watch);
    if (lifeline.ended !== undefined) throw nameEnd('token', lifeline.ended);
    const ticket = throttle.enter(lifeline.deadlineAt, standing);
    let attempts: Attempts | undefined;
    const letGo = lifeline.onEnd((reason) => {
      // The queue keeps the deadline itself, and counts it as what it is.
      if (reason.end.kind !== 'deadline') ticket.leave(reason);
      attempts?.abort();
    });
    try {
      if (!ticket.isAdmitted) await inStage('queue', ticket.admitted(), watch);
      if (!body.isWhole) {
        if (expectsContinue(request)) response.writeContinue();
        // It names its ends itself: a stage is for the watch, and most requests have none.
        await (watch === undefined ? body.read(lifeline) : inStage('body', body.read(lifeline), watch));
      }
      attempts = new Attempts(parts, exchange, ticket, body);
      return await attempts.run();
    } finally {
      letGo();
      ticket.leave();
      tally.queuedMs = ticket.waitedMs;
    }
  } finally {
    tally.requestBytes = body.receivedBytes;
    body.dispose();
  }
}

/** RFC 9110 §10.1.1: an interim answer is nothing that HTTP/1.0 knows. */
function expectsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' && /^100-continue$/i.test(headers.expect ?? '');
}
