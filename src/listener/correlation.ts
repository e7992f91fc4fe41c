/**
 * How a request is found again: its id, its trace and its caller, read from the head as received, so that a rejected request has them too. An
 * invalid id is forwarded like any other field and used for nothing else.
 */
import type { IncomingMessage } from 'node:http';
import type { RequestStats } from '../exchange/exchange.ts';
import type { RequestTracer } from '../exchange/request-tracer.ts';
import { readTraceParent } from '../exchange/trace-context.ts';
import type { Redact } from '../platform/secret-redaction.ts';
import { ensureRequestId, REQUEST_ID } from '../platform/request-id.ts';
import { isIdempotentMethod } from '../retry/policy.ts';
import type { ReplyFacts } from './local-reply.ts';
import type { RequestHead } from './request-head.ts';
import { CALLER_NAME } from './request-preferences.ts';

/** A field that is repeated is valid in no place. @param head undefined for a request that could not be parsed */
export function createRequestStats(head: RequestHead | undefined, tracer?: RequestTracer): RequestStats {
  const isCorrelated = head !== undefined && (head.hasOptional || tracer !== undefined);
  const fields = isCorrelated ? [head.requestIds, head.traceParents, head.callers] : [];
  const [id, traceParent, caller] = fields.map((values) => (values.length === 1 ? values[0] : undefined));
  const traceId = tracer?.traceId ?? (traceParent === undefined ? undefined : readTraceParent(traceParent)?.traceId);
  return {
    attempts: 0,
    queuedMs: 0,
    requestBytes: 0,
    responseBytes: 0,
    requestId: id !== undefined && REQUEST_ID.test(id) ? id : traceId,
    traceId,
    caller: caller !== undefined && CALLER_NAME.test(caller) ? caller : undefined,
    upstreamRequestId: undefined,
    lacksResponse: false,
    pending: undefined,
    callId: undefined,
  };
}

/** What a local reply says of its request. The id is kept, so that the request is recorded with the same one. */
export function describeRequest(request: IncomingMessage | undefined, stats: RequestStats, mask: Redact): ReplyFacts {
  const isOutcomeUnknown = stats.lacksResponse && !isIdempotentMethod(request?.method ?? '');
  return { requestId: ensureRequestId(stats), isOutcomeUnknown, mask };
}
