/** The span of a token request. It is a trace of its own, since one token request serves many waiting requests. */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api';
import type { Clock } from '../../platform/clock.ts';
import type { SidecarEvent } from '../events.ts';
import { createSpanTimeConverter } from './times.ts';
import { describeServer } from './attributes.ts';

type TokenRequested = Extract<SidecarEvent, { kind: 'token-requested' }>;

export interface TokenSpanOptions {
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly tokenServers: ReadonlyMap<string, URL>;
}

/** To be called when the token request has just ended. */
export function recordTokenSpan({ tracer, clock, tokenServers }: TokenSpanOptions, event: TokenRequested): void {
  const server = tokenServers.get(event.credential);
  const endAt = createSpanTimeConverter(clock)(clock.now());
  const attributes = {
    'bearer_sidecar.credential': event.credential,
    'bearer_sidecar.token_outcome': event.outcome,
    ...(server === undefined ? {} : describeServer(server)),
    ...(event.outcome === 'ok' ? {} : { 'error.type': event.outcome }),
  };
  const startTime = endAt - event.durationMs;
  const span = tracer.startSpan('token request', { kind: SpanKind.CLIENT, startTime, attributes }, ROOT_CONTEXT);
  if (event.outcome !== 'ok') span.setStatus({ code: SpanStatusCode.ERROR, message: event.detail ?? event.outcome });
  span.end(endAt);
}
