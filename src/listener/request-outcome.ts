/** Records each request once, when it has ended. */
import type { IncomingMessage } from 'node:http';
import type { RouteContext, RequestOutcome, RequestStats } from '../exchange/exchange.ts';
import type { RequestTracer } from '../exchange/request-tracer.ts';
import { isIdempotentMethod } from '../retry/policy.ts';
import type { RequestRecord } from '../telemetry/request-record.ts';
import { LOCAL_REPLIES } from '../platform/errors.ts';
import { PREFLIGHT_STATUS } from './local-reply.ts';

/** Logged and counted for a client that left before the end of its response. */
const CLIENT_LEFT_STATUS = 499;

/** Where an outcome is recorded. */
export type OutcomeRecorder = Pick<RouteContext, 'counters' | 'route' | 'maskSecrets'>;

export const CLIENT_LEFT: RequestOutcome = { kind: 'client-left' };

export function recordOutcome(
  { counters, route, maskSecrets }: OutcomeRecorder,
  request: IncomingMessage | undefined,
  outcome: RequestOutcome,
  stats: RequestStats,
  durationMs: number,
  tracer?: RequestTracer,
): void {
  const { code, source, localReply, cutBy, fault }: EndOfRequest =
    outcome.kind === 'relayed'
      ? { code: outcome.status, source: 'upstream', cutBy: outcome.fault?.cutBy, fault: outcome.fault?.detail }
      : describeLocalEnd(outcome);
  const { attempts, queuedMs, requestBytes, responseBytes, requestId, traceId, caller, upstreamRequestId } = stats;
  const record: RequestRecord = {
    route,
    method: request?.method ?? '',
    path: extractPath(request?.url ?? ''),
    code,
    source,
    localReply,
    durationMs,
    attempts,
    queuedMs,
    requestBytes,
    responseBytes,
    cutBy,
    fault: fault && maskSecrets(fault),
    isOutcomeUnknown: stats.lacksResponse && !isIdempotentMethod(request?.method ?? ''),
    requestId,
    caller,
    upstreamRequestId: upstreamRequestId && maskSecrets(upstreamRequestId),
    traceId,
  };
  counters.recordRequest(record);
  tracer?.endRequest(record);
}

/**
 * Why a client does not know the outcome of its call; undefined: it does.
 * @param isDelivered the connection has taken all of the response
 */
export function explainUnknown(
  outcome: RequestOutcome,
  { lacksResponse }: RequestStats,
  isDelivered: boolean,
): string | undefined {
  if (outcome.kind === 'replied' && lacksResponse) return outcome.error.code;
  if (outcome.kind === 'relayed' && outcome.fault !== undefined) return 'RESPONSE_CUT';
  return outcome.kind === 'client-left' || !isDelivered ? 'CLIENT_LEFT' : undefined;
}

type EndOfRequest = Pick<RequestRecord, 'code' | 'source' | 'localReply' | 'cutBy' | 'fault'>;

function describeLocalEnd(outcome: Exclude<RequestOutcome, { kind: 'relayed' }>): EndOfRequest {
  switch (outcome.kind) {
    case 'replied': {
      const { code, message } = outcome.error;
      return { code: LOCAL_REPLIES[code].status, source: 'sidecar', localReply: code, fault: message };
    }
    case 'preflight':
      return { code: PREFLIGHT_STATUS, source: 'sidecar' };
    case 'client-left':
      return { code: CLIENT_LEFT_STATUS, source: 'sidecar', fault: 'the client left' };
  }
}

/** Without the query, and without the authority of an absolute-form target. */
function extractPath(target: string): string {
  const path = target.startsWith('/') ? target : target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '');
  const end = path.search(/[?#]/);
  return end < 0 ? path : path.slice(0, end);
}
