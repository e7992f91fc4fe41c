/** Records each request once, when it has ended. */
import type { IncomingMessage } from 'node:http';
import type { ExchangeParts, RequestOutcome, RequestStats } from '../exchange/exchange.ts';
import type { RequestTracer } from '../exchange/request-tracer.ts';
import { readTraceParent } from '../exchange/trace-context.ts';
import { isIdempotentMethod } from '../retry/policy.ts';
import type { RequestRecord } from '../telemetry/request-record.ts';
import { getReplyStatus } from './local-reply.ts';
import { PREFLIGHT_STATUS } from './preflight.ts';

/** Logged and counted for a client that left before the end of its response. */
const CLIENT_LEFT_STATUS = 499;

export const CLIENT_LEFT: RequestOutcome = { kind: 'client-left' };

export function createRequestStats(): RequestStats {
  return { attempts: 0, queuedMs: 0, requestBytes: 0, responseBytes: 0, lacksResponse: false, pending: undefined };
}

/** @param request undefined when it could not be parsed */
export function recordOutcome(
  { counters, route }: Pick<ExchangeParts, 'counters' | 'route'>,
  request: IncomingMessage | undefined,
  outcome: RequestOutcome,
  stats: RequestStats,
  durationMs: number,
  tracer?: RequestTracer,
): void {
  const { code, fault } = describeOutcome(outcome);
  const { attempts, queuedMs, requestBytes, responseBytes } = stats;
  const record: RequestRecord = {
    route,
    method: request?.method ?? '',
    path: extractPath(request?.url ?? ''),
    code,
    source: outcome.kind === 'relayed' ? 'upstream' : 'sidecar',
    localReply: outcome.kind === 'replied' ? outcome.error.code : undefined,
    durationMs,
    attempts,
    queuedMs,
    requestBytes,
    responseBytes,
    cutBy: outcome.kind === 'relayed' ? outcome.fault?.cutBy : undefined,
    fault,
    isOutcomeUnknown: stats.lacksResponse && !isIdempotentMethod(request?.method ?? ''),
    traceId: tracer?.traceId ?? readTraceParent(request?.headers.traceparent)?.traceId,
  };
  counters.recordRequest(record);
  tracer?.endRequest(record);
}

function describeOutcome(outcome: RequestOutcome): { readonly code: number; readonly fault: string | undefined } {
  switch (outcome.kind) {
    case 'relayed':
      return { code: outcome.status, fault: outcome.fault?.detail };
    case 'replied':
      return { code: getReplyStatus(outcome.error.code), fault: outcome.error.message };
    case 'preflight':
      return { code: PREFLIGHT_STATUS, fault: undefined };
    case 'client-left':
      return { code: CLIENT_LEFT_STATUS, fault: 'the client left' };
  }
}

/** Without the query, and without the authority of an absolute-form target. */
function extractPath(target: string): string {
  const path = target.startsWith('/') ? target : target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '');
  const end = path.search(/[?#]/);
  return end < 0 ? path : path.slice(0, end);
}
