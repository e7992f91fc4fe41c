/** Tells of each request once, when it has ended: the one event behind the request metrics and the access log. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SidecarError } from '../errors.ts';
import type { ExchangeParts, Relayed, Tally } from '../exchange/exchange.ts';
import { readTraceParent } from '../exchange/trace-context.ts';
import type { Watch } from '../exchange/watch.ts';
import type { RequestEnded } from '../telemetry/events.ts';
import { describeReply } from './local-reply.ts';
import { PREFLIGHT_ANSWERED } from './preflight.ts';

export type Ending =
  | { readonly kind: 'relayed'; readonly relayed: Relayed }
  | { readonly kind: 'replied'; readonly error: SidecarError }
  | { readonly kind: 'client-left' }
  | { readonly kind: 'preflight' };

/** The status logged and counted for a client that left before its answer had ended. */
const CLIENT_LEFT = 499;

export function emptyTally(): Tally {
  return { attempts: 0, queuedMs: 0, requestBytes: 0, responseBytes: 0 };
}

/** The upstream broke its answer off, and so did the sidecar. */
export function isCut(ending: Ending | undefined): boolean {
  return ending?.kind === 'relayed' && ending.relayed.fault !== undefined;
}

/** @param request undefined when the parser never got as far as one */
export function tellEnding(
  { observe, route }: Pick<ExchangeParts, 'observe' | 'route'>,
  request: IncomingMessage | undefined,
  ending: Ending,
  tally: Tally,
  durationMs: number,
  watch?: Watch,
): void {
  const event: RequestEnded = {
    kind: 'request-ended',
    route,
    method: request?.method ?? '',
    path: pathOf(request),
    durationMs,
    ...tally,
    traceId: watch?.traceId ?? readTraceParent(request?.headers.traceparent)?.traceId,
    ...describeEnding(ending),
  };
  if (ending.kind === 'replied') observe({ kind: 'local-reply', code: ending.error.code });
  observe(event);
  watch?.ended(event);
}

function describeEnding(ending: Ending): Pick<RequestEnded, 'code' | 'source' | 'localReply' | 'fault'> {
  switch (ending.kind) {
    case 'relayed': {
      const { status, fault } = ending.relayed;
      return fault === undefined ? { code: status, source: 'upstream' } : { code: status, source: 'upstream', fault };
    }
    case 'replied': {
      const { code, message } = ending.error;
      return { code: describeReply(ending.error).status, source: 'sidecar', localReply: code, fault: message };
    }
    case 'preflight':
      return { code: PREFLIGHT_ANSWERED, source: 'sidecar' };
    case 'client-left':
      return { code: CLIENT_LEFT, source: 'sidecar', fault: 'the client left' };
  }
}

/** Without query, and without the authority of an absolute-form target. */
function pathOf(request: IncomingMessage | undefined): string {
  return (request?.url ?? '').replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0] ?? '';
}

/** Calls back, then resolves, when the response is closed, by whomever. */
export function whenClosed(response: ServerResponse, then: () => void): Promise<void> {
  return new Promise((resolve) => {
    response.once('close', () => {
      // Where it was closed from this side, the request's story is over by the next turn.
      setImmediate(() => {
        then();
        resolve();
      });
    });
  });
}
