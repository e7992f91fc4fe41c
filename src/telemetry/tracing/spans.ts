/**
 * Spans, after OpenTelemetry's semantic conventions for HTTP. Of a request: a server span, in it a client span per attempt, whose context is
 * sent upstream (W3C Trace Context), and a span per wait of at least 1 ms. Spans hold no header field and no query.
 */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api';
import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import type { Clock } from '../../platform/clock.ts';
import type { Redact } from '../../platform/secret-redaction.ts';
import { truncate } from '../../platform/truncate.ts';
import { readTraceParent, replaceTraceContext, type TraceParent } from '../../exchange/trace-context.ts';
import type { TracedAttempt, Stage, RequestTracer, TracedRequest } from '../../exchange/request-tracer.ts';
import type { AttemptResult } from '../../upstream/response-receiver.ts';
import type { SidecarEvent } from '../events.ts';
import { KNOWN_METHODS } from '../metrics/route-counters.ts';
import type { RequestRecord } from '../request-record.ts';

export interface SpanOptions {
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** For texts of clients and upstreams, before they are cut. Default: none */
  readonly mask?: Redact;
}

/** Shorter waits get no span, so that the longer ones stay visible. */
const MIN_WAIT_SPAN_MS = 1;

const WAIT_SPAN_NAMES: Readonly<Record<Stage, string>> = {
  token: 'wait for a token',
  queue: 'wait in the queue',
  body: 'read the request body',
  upstream: 'wait before a retry',
};

/** The span of a request, which begins when it is constructed. */
export class RequestSpans implements RequestTracer {
  readonly traceId: string;
  readonly #options: Required<SpanOptions>;
  readonly #toTime: (at: number) => number;
  readonly #span: Span;
  readonly #context: Context;
  readonly #isRecording: boolean;
  /** The client sent a valid trace context; its tracestate is passed on. */
  readonly #isContinued: boolean;
  #wait: { readonly stage: Stage; readonly since: number } | undefined;
  #attempt: Span | undefined;
  #attempts = 0;

  constructor(
    { tracer, clock, mask = (text) => text }: SpanOptions,
    { method = '', httpVersion, headers }: TracedRequest,
  ) {
    this.#options = { tracer, clock, mask };
    this.#toTime = createSpanTimeConverter(clock);
    const attributes = {
      ...describeMethod(mask(method)),
      'url.scheme': 'http',
      'network.protocol.version': httpVersion,
    };
    const options = { kind: SpanKind.SERVER, startTime: this.#time(), attributes };
    const parent = readTraceParent(headers.traceparent);
    this.#isContinued = parent !== undefined;
    this.#span = tracer.startSpan(spanNameOfMethod(method), options, contextOf(parent));
    this.#context = trace.setSpan(ROOT_CONTEXT, this.#span);
    this.#isRecording = this.#span.isRecording();
    this.traceId = this.#span.spanContext().traceId;
  }

  startWait(stage: Stage): void {
    if (this.#isRecording) this.#wait = { stage, since: this.#options.clock.now() };
  }

  endWait(): void {
    const wait = this.#wait;
    this.#wait = undefined;
    if (wait === undefined || this.#options.clock.now() - wait.since < MIN_WAIT_SPAN_MS) return;
    const startTime = this.#toTime(wait.since);
    this.#options.tracer.startSpan(WAIT_SPAN_NAMES[wait.stage], { startTime }, this.#context).end(this.#time());
  }

  startAttempt(attempt: TracedAttempt): string[] {
    if (this.#isRecording) {
      const attributes = describeAttempt({ ...attempt, path: this.#options.mask(attempt.path) }, this.#attempts++);
      const options = { kind: SpanKind.CLIENT, startTime: this.#time(), attributes };
      this.#attempt = this.#options.tracer.startSpan(spanNameOfMethod(attempt.method), options, this.#context);
    }
    const { traceId, spanId, traceFlags } = (this.#attempt ?? this.#span).spanContext();
    const isSampled = (traceFlags & TraceFlags.SAMPLED) > 0;
    return replaceTraceContext(attempt.headers, { traceId, spanId, isSampled }, this.#isContinued);
  }

  endAttempt(end: AttemptResult): void {
    const span = this.#attempt;
    this.#attempt = undefined;
    if (span === undefined) return;
    const { status, error, message } = attemptResultOf(end);
    if (status !== undefined) span.setAttribute('http.response.status_code', status);
    if (error !== undefined) markFailed(span, error, message && this.#options.mask(message));
    span.end(this.#time());
  }

  endRequest(event: RequestRecord): void {
    this.#attempt?.end(this.#time());
    if (this.#isRecording) this.#describe(event);
    this.#span.end(this.#time());
  }

  #describe({ method, path, route, code, localReply, fault, attempts, source, isOutcomeUnknown }: RequestRecord): void {
    const span = this.#span;
    span.updateName(`${spanNameOfMethod(method)} ${route}`);
    span.setAttributes({
      'url.path': truncate(this.#options.mask(path)),
      'http.response.status_code': code,
      'bearer_sidecar.route': route,
      'bearer_sidecar.attempts': attempts,
      ...(localReply === undefined ? {} : { 'bearer_sidecar.local_reply': localReply }),
      ...(isOutcomeUnknown === true && { 'bearer_sidecar.outcome': 'unknown' }),
    });
    const hasFailed = code >= 500 || (fault !== undefined && localReply === undefined);
    // Without a response of the upstream or a local reply, the request has ended because the client left.
    const breakOff = source === 'sidecar' ? 'client_left' : 'answer_broke_off';
    if (hasFailed) markFailed(span, localReply ?? (fault === undefined ? String(code) : breakOff), fault);
  }

  #time(): number {
    return this.#toTime(this.#options.clock.now());
  }
}

function attemptResultOf(end: AttemptResult): { status?: number; error?: string; message?: string | undefined } {
  switch (end.kind) {
    case 'failed':
      return { error: end.failure.kind, message: end.failure.detail };
    case 'held':
    case 'relayed': {
      const { status } = end.head;
      const fault = end.kind === 'held' ? undefined : end.fault?.detail;
      if (fault !== undefined) return { status, error: 'answer_broke_off', message: fault };
      return status < 400 ? { status } : { status, error: String(status) };
    }
  }
}

function markFailed(span: Span, error: string, message: string | undefined): void {
  span.setAttribute('error.type', error);
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message: truncate(message) }) });
}

function contextOf(parent: TraceParent | undefined): Context {
  if (parent === undefined) return ROOT_CONTEXT;
  const { traceId, spanId, isSampled } = parent;
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

/** Called when the token request has just ended. It is a trace of its own, since it serves many waiting requests. */
export function recordTokenSpan(
  { tracer, clock }: SpanOptions,
  event: Extract<SidecarEvent, { kind: 'token-requested' }>,
  server: URL | undefined,
): void {
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

/** To span times: milliseconds since the Unix epoch. The offset is fixed, so that a jump of the wall clock changes no order or length. */
function createSpanTimeConverter(clock: Clock): (at: number) => number {
  const offsetMs = clock.wallNow() - clock.now();
  return (at) => at + offsetMs;
}

/** `HTTP` for a non-standard method: span names must be few. */
function spanNameOfMethod(method: string): string {
  return KNOWN_METHODS.has(method) ? method : 'HTTP';
}

/** The method; a non-standard one also as it was sent. */
function describeMethod(method: string): Attributes {
  if (KNOWN_METHODS.has(method)) return { 'http.request.method': method };
  return { 'http.request.method': '_OTHER', 'http.request.method_original': truncate(method) };
}

function describeServer({ protocol, hostname, port }: URL): Attributes {
  const usual = protocol === 'https:' ? 443 : 80;
  return { 'server.address': hostname, 'server.port': port === '' ? usual : Number(port) };
}

/** @param resends earlier attempts of the same request */
function describeAttempt({ method, baseUrl, path }: TracedAttempt, resends: number): Attributes {
  const bare = truncate(path.split(/[?#]/, 1)[0] ?? '');
  return {
    ...describeMethod(method),
    ...describeServer(baseUrl),
    'url.full': `${baseUrl.origin}${bare}`,
    'url.path': bare,
    ...(resends === 0 ? {} : { 'http.request.resend_count': resends }),
  };
}
