/**
 * How a request is found again: its id, its trace and its caller, read from the head as received, so that a rejected request has them too. An
 * invalid id is forwarded like any other field and used for nothing else.
 */
import type { IncomingMessage } from 'node:http';
import type { RequestStats } from '../exchange/exchange.ts';
import type { RequestTracer } from '../exchange/request-tracer.ts';
import { readTraceParent } from '../exchange/trace-context.ts';
import { ensureRequestId, REQUEST_ID } from '../platform/request-id.ts';
import { isIdempotentMethod } from '../retry/policy.ts';
import type { ReplyFacts } from './local-reply.ts';
import { CALLER, CALLER_NAME } from './request-preferences.ts';

export interface Correlation {
  /** The client's, if it sent one valid field, else the trace's; undefined: neither. */
  requestId: string | undefined;
  readonly traceId: string | undefined;
  readonly caller: string | undefined;
}

const FIELDS = ['x-request-id', 'traceparent', CALLER] as const;
/** The place in `FIELDS` by the length of a name: most names are passed over without a lower-case copy. */
const FIELD_OF_LENGTH = new Map(FIELDS.map((name, field) => [name.length, field]));
/** Of a field that is absent, or repeated: valid in no place. */
const NO_VALUE = '';
const NO_HEADERS: readonly string[] = [];

/** @param request undefined when it could not be parsed */
export function readCorrelation(request: IncomingMessage | undefined, tracer: RequestTracer | undefined): Correlation {
  const rawHeaders = request?.rawHeaders ?? NO_HEADERS;
  const values: (string | undefined)[] = [undefined, undefined, undefined];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const field = FIELD_OF_LENGTH.get(name.length);
    if (field === undefined || name.toLowerCase() !== FIELDS[field]) continue;
    values[field] = values[field] === undefined ? rawHeaders[at + 1] : NO_VALUE;
  }
  const [id = NO_VALUE, traceParent = NO_VALUE, caller = NO_VALUE] = values;
  const traceId = tracer?.traceId ?? (traceParent === NO_VALUE ? undefined : readTraceParent(traceParent)?.traceId);
  return {
    requestId: REQUEST_ID.test(id) ? id : traceId,
    traceId,
    caller: CALLER_NAME.test(caller) ? caller : undefined,
  };
}

/** What a local reply says of its request. The id is kept, so that the request is recorded with the same one. */
export function describeRequest(
  request: IncomingMessage | undefined,
  stats: RequestStats,
  tracer?: RequestTracer,
): ReplyFacts {
  stats.requestId ??= ensureRequestId(readCorrelation(request, tracer));
  const isOutcomeUnknown = stats.lacksResponse && !isIdempotentMethod(request?.method ?? '');
  return { requestId: stats.requestId, isOutcomeUnknown };
}
