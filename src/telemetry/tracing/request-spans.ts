/**
 * The spans of one request: one of the server that the client sees, in it one of the client for each attempt, whose context goes
 * upstream (W3C Trace Context), and one for each wait that lasted. No field of the request or the answer is in them.
 */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api';
import type { Context, Span, Tracer } from '@opentelemetry/api';
import type { Clock } from '../../platform/clock.ts';
import { readTraceParent, replaceTraceContext, type TraceParent } from '../../exchange/trace-context.ts';
import type { AttemptBegun, Stage, Watch, Watched } from '../../exchange/watch.ts';
import type { AttemptEnd } from '../../upstream/attempt-terms.ts';
import type { RequestEnded } from '../events.ts';
import { cut } from '../log/shown.ts';
import { describeAttempt, describeMethod, nameMethod } from './attributes.ts';
import { anchorTimes } from './times.ts';

export interface RequestSpanTerms {
  readonly tracer: Tracer;
  readonly clock: Clock;
}

/** A shorter wait is no news, and a span for each would bury the others. */
const SHORTEST_WAIT_MS = 1;

const WAITS: Readonly<Record<Stage, string>> = {
  token: 'wait for a token',
  queue: 'wait in the queue',
  body: 'read the request body',
  upstream: 'wait before a retry',
};

/** Begins the span of a request that has just arrived. */
export function watchRequest(terms: RequestSpanTerms, request: Watched): Watch {
  return new RequestSpans(terms, request);
}

class RequestSpans implements Watch {
  readonly traceId: string;
  readonly #tracer: Tracer;
  readonly #clock: Clock;
  readonly #toTime: (at: number) => number;
  readonly #span: Span;
  readonly #context: Context;
  readonly #isRecording: boolean;
  /** The client's trace goes on: what other parties have noted of it does, too. */
  readonly #isContinued: boolean;
  #wait: { readonly stage: Stage; readonly since: number } | undefined;
  #attempt: Span | undefined;
  #attempts = 0;

  constructor({ tracer, clock }: RequestSpanTerms, { method = '', httpVersion, headers }: Watched) {
    this.#tracer = tracer;
    this.#clock = clock;
    this.#toTime = anchorTimes(clock);
    const attributes = { ...describeMethod(method), 'url.scheme': 'http', 'network.protocol.version': httpVersion };
    const options = { kind: SpanKind.SERVER, startTime: this.#time(), attributes };
    const parent = readTraceParent(headers.traceparent);
    this.#isContinued = parent !== undefined;
    this.#span = tracer.startSpan(nameMethod(method), options, contextOf(parent));
    this.#context = trace.setSpan(ROOT_CONTEXT, this.#span);
    this.#isRecording = this.#span.isRecording();
    this.traceId = this.#span.spanContext().traceId;
  }

  waitBegins(stage: Stage): void {
    if (this.#isRecording) this.#wait = { stage, since: this.#clock.now() };
  }

  waitEnds(): void {
    const wait = this.#wait;
    this.#wait = undefined;
    if (wait === undefined || this.#clock.now() - wait.since < SHORTEST_WAIT_MS) return;
    const startTime = this.#toTime(wait.since);
    this.#tracer.startSpan(WAITS[wait.stage], { startTime }, this.#context).end(this.#time());
  }

  attemptBegins(attempt: AttemptBegun): string[] {
    if (this.#isRecording) {
      const attributes = describeAttempt(attempt, this.#attempts++);
      const options = { kind: SpanKind.CLIENT, startTime: this.#time(), attributes };
      this.#attempt = this.#tracer.startSpan(nameMethod(attempt.method), options, this.#context);
    }
    const { traceId, spanId, traceFlags } = (this.#attempt ?? this.#span).spanContext();
    const isSampled = (traceFlags & TraceFlags.SAMPLED) > 0;
    return replaceTraceContext(attempt.fields, { traceId, spanId, isSampled }, this.#isContinued);
  }

  attemptEnds(end: AttemptEnd): void {
    const span = this.#attempt;
    this.#attempt = undefined;
    if (span === undefined) return;
    const { status, error, message } = judge(end);
    if (status !== undefined) span.setAttribute('http.response.status_code', status);
    if (error !== undefined) fail(span, error, message);
    span.end(this.#time());
  }

  answerFields(): readonly string[] {
    return [];
  }

  ended(event: RequestEnded): void {
    this.#attempt?.end(this.#time());
    if (this.#isRecording) this.#describe(event);
    this.#span.end(this.#time());
  }

  #describe({ method, path, route, code, localReply, fault, attempts, source }: RequestEnded): void {
    const span = this.#span;
    span.updateName(`${nameMethod(method)} ${route}`);
    span.setAttributes({
      'url.path': cut(path),
      'http.response.status_code': code,
      'bearer_sidecar.route': route,
      'bearer_sidecar.attempts': attempts,
      ...(localReply === undefined ? {} : { 'bearer_sidecar.local_reply': localReply }),
    });
    const isOurFault = code >= 500 || (fault !== undefined && localReply === undefined);
    if (isOurFault) fail(span, localReply ?? (fault === undefined ? String(code) : breakOff(source)), fault);
  }

  #time(): number {
    return this.#toTime(this.#clock.now());
  }
}

/** The client that left is the only one who ends a request without a reply of the sidecar's or the upstream's. */
function breakOff(source: RequestEnded['source']): string {
  return source === 'sidecar' ? 'client_left' : 'answer_broke_off';
}

function judge(end: AttemptEnd): { status?: number; error?: string; message?: string | undefined } {
  switch (end.kind) {
    case 'failed':
      return { error: end.failure.kind, message: end.failure.detail };
    case 'held':
    case 'relayed': {
      const { status } = end.kind === 'held' ? end.answer.head : end.head;
      const fault = end.kind === 'held' ? undefined : end.fault?.detail;
      if (fault !== undefined) return { status, error: 'answer_broke_off', message: fault };
      return status < 400 ? { status } : { status, error: String(status) };
    }
  }
}

function fail(span: Span, error: string, message: string | undefined): void {
  span.setAttribute('error.type', error);
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message: cut(message) }) });
}

function contextOf(parent: TraceParent | undefined): Context {
  if (parent === undefined) return ROOT_CONTEXT;
  const { traceId, spanId, isSampled } = parent;
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}
