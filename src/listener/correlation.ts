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

export type Correlation = Pick<RequestStats, 'requestId' | 'traceId' | 'caller'>;

/** A field that is repeated is valid in no place. */
export function readCorrelation(
  { requestIds, traceParents, callers }: RequestHead,
  tracer: RequestTracer | undefined,
): Correlation {
  const [id, traceParent, caller] = [requestIds, traceParents, callers].map((values) =>
    values.length === 1 ? values[0] : undefined,
  );
  const traceId = tracer?.traceId ?? (traceParent === undefined ? undefined : readTraceParent(traceParent)?.traceId);
  return {
    requestId: id !== undefined && REQUEST_ID.test(id) ? id : traceId,
    traceId,
    caller: caller !== undefined && CALLER_NAME.test(caller) ? caller : undefined,
  };
}

/** What a local reply says of its request. The id is kept, so that the request is recorded with the same one. */
export function describeRequest(request: IncomingMessage | undefined, stats: RequestStats, mask: Redact): ReplyFacts {
  const isOutcomeUnknown = stats.lacksResponse && !isIdempotentMethod(request?.method ?? '');
  return { requestId: ensureRequestId(stats), isOutcomeUnknown, mask };
}
