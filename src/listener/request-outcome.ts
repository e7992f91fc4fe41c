/** Tells of each request once, when it has ended: the one event behind the request metrics and the access log. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SidecarError } from '../platform/errors.ts';
import type { ExchangeParts, RelayedResponse, RequestStats } from '../exchange/exchange.ts';
import { readTraceParent } from '../exchange/trace-context.ts';
import type { RequestTracer } from '../exchange/request-tracer.ts';
import type { RequestEnded } from '../telemetry/events.ts';
import { buildLocalReply } from './local-reply.ts';
import { PREFLIGHT_STATUS } from './preflight.ts';

export type RequestOutcome =
  | { readonly kind: 'relayed'; readonly relayed: RelayedResponse }
  | { readonly kind: 'replied'; readonly error: SidecarError }
  | { readonly kind: 'client-left' }
  | { readonly kind: 'preflight' };

/** The status logged and counted for a client that left before its answer had ended. */
const CLIENT_LEFT_STATUS = 499;

export const CLIENT_LEFT: RequestOutcome = { kind: 'client-left' };

export function createRequestStats(): RequestStats {
  return { attempts: 0, queuedMs: 0, requestBytes: 0, responseBytes: 0 };
}

/** The upstream broke its answer off, and so did the sidecar. */
export function isCutShort(ending: RequestOutcome | undefined): boolean {
  return ending?.kind === 'relayed' && ending.relayed.fault !== undefined;
}

/** @param request undefined when the parser never got as far as one */
export function recordOutcome(
  { observe, route }: Pick<ExchangeParts, 'observe' | 'route'>,
  request: IncomingMessage | undefined,
  ending: RequestOutcome,
  tally: RequestStats,
  durationMs: number,
  watch?: RequestTracer,
): void {
  if (ending.kind === 'replied') observe({ kind: 'local-reply', code: ending.error.code });
  const { attempts, queuedMs, requestBytes, responseBytes } = tally;
  const event: RequestEnded = {
    kind: 'request-ended',
    route,
    method: request?.method ?? '',
    path: extractPath(request?.url ?? ''),
    code: getStatusCode(ending),
    source: ending.kind === 'relayed' ? 'upstream' : 'sidecar',
    localReply: ending.kind === 'replied' ? ending.error.code : undefined,
    durationMs,
    attempts,
    queuedMs,
    requestBytes,
    responseBytes,
    cutBy: ending.kind === 'relayed' ? ending.relayed.fault?.cutBy : undefined,
    fault: describeFault(ending),
    traceId: watch?.traceId ?? readTraceParent(request?.headers.traceparent)?.traceId,
  };
  observe(event);
  watch?.endRequest(event);
}

function getStatusCode(ending: RequestOutcome): number {
  switch (ending.kind) {
    case 'relayed':
      return ending.relayed.status;
    case 'replied':
      return buildLocalReply(ending.error).status;
    case 'preflight':
      return PREFLIGHT_STATUS;
    case 'client-left':
      return CLIENT_LEFT_STATUS;
  }
}

function describeFault(ending: RequestOutcome): string | undefined {
  switch (ending.kind) {
    case 'relayed':
      return ending.relayed.fault?.detail;
    case 'replied':
      return ending.error.message;
    case 'preflight':
      return undefined;
    case 'client-left':
      return 'the client left';
  }
}

/** Without query, and without the authority of an absolute-form target. */
function extractPath(target: string): string {
  const path = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '');
  const end = path.search(/[?#]/);
  return end < 0 ? path : path.slice(0, end);
}

/** Tells once when the response is closed, by whomever, and whether it was broken off: not written to its end. */
export function notifyWhenClosed(response: ServerResponse, hearer: { onClosed(isBroken: boolean): void }): void {
  response.on('close', () => {
    if (response.writableFinished) hearer.onClosed(false);
    // Where it was closed from this side, the request's story is over by the next turn.
    else setImmediate(() => hearer.onClosed(true));
  });
}
