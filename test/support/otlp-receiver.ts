/**
 * A receiver of traces over HTTP, as a collector is one (OTLP 1.x, application/x-protobuf). What it gets is decoded by protobufjs, which
 * the sidecar does not use, from the message definitions of OTLP: those parts of them that the tests look at.
 */
import { createServer } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import protobuf from 'protobufjs';
import { closeServer, listenOnLoopback } from './loopback.ts';
import { waitUntil } from './until.ts';

const OTLP = `
  syntax = "proto3";
  message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message Span {
    bytes trace_id = 1;
    bytes span_id = 2;
    bytes parent_span_id = 4;
    string name = 5;
    int32 kind = 6;
    fixed64 start_time_unix_nano = 7;
    fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9;
    Status status = 15;
  }
  message Status { string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; } }
`;
const EXPORT = protobuf.parse(OTLP).root.lookupType('ExportTraceServiceRequest');

interface KeyValue {
  readonly key: string;
  readonly value?: Readonly<Record<string, unknown>>;
}

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly KeyValue[];
  readonly status?: { readonly code?: number; readonly message?: string };
}

interface SentRequest {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] };
    readonly scopeSpans?: readonly { readonly spans?: readonly SentSpan[] }[];
  }[];
}

type Attributes = Readonly<Record<string, unknown>>;

export interface ReceivedSpan {
  /** Hexadecimal. */
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: it begins its trace. */
  readonly parentSpanId: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly durationMs: number;
  readonly attributes: Attributes;
  /** 2: failed. */
  readonly status: number;
  readonly resource: Attributes;
}

export interface OtlpReceiver extends AsyncDisposable {
  /** Base URL, as OTEL_EXPORTER_OTLP_ENDPOINT has it. */
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Header fields of each export. */
  readonly exports: readonly IncomingHttpHeaders[];
  /** Everything that was sent, as it was sent. */
  readonly receivedBytes: () => Buffer;
  /** Resolves with the spans once one of this name is there. */
  waitForSpan(name: string): Promise<readonly ReceivedSpan[]>;
}

/** @param behaviour `hang`: never responds. Default: accepts everything */
export async function startOtlpReceiver(behaviour: 'take' | 'hang' | 500 = 'take'): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const exports: IncomingHttpHeaders[] = [];
  const bodies: Buffer[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      exports.push(request.headers);
      bodies.push(body);
      if (request.method !== 'POST' || request.url !== '/v1/traces') response.writeHead(404).end();
      else if (behaviour === 500) response.writeHead(500).end('a secret of the collector');
      else if (behaviour === 'take') {
        spans.push(...decode(body));
        response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
      }
    });
  });
  const url = await listenOnLoopback(server);
  return {
    url,
    spans,
    exports,
    receivedBytes: () => Buffer.concat(bodies),
    waitForSpan: async (name) => {
      await waitUntil(() => spans.some((span) => span.name === name), `the span ${name} has arrived`);
      return spans;
    },
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

function decode(body: Buffer): ReceivedSpan[] {
  const { resourceSpans = [] } = EXPORT.toObject(EXPORT.decode(body), { longs: String, bytes: Buffer }) as SentRequest;
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans.flatMap(({ spans = [] }) => spans.map((span) => asReceived(span, toAttributes(resource?.attributes)))),
  );
}

function asReceived(span: SentSpan, resource: Attributes): ReceivedSpan {
  const { traceId, spanId, parentSpanId = '', name, kind, status } = span;
  return {
    traceId: hex(traceId),
    spanId: hex(spanId),
    parentSpanId: hex(parentSpanId),
    name,
    kind,
    durationMs: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
    attributes: toAttributes(span.attributes),
    status: status?.code ?? 0,
    resource,
  };
}

function toAttributes(pairs: readonly KeyValue[] = []): Attributes {
  return Object.fromEntries(
    pairs.map(({ key, value = {} }) => {
      const [[kind, content] = ['', undefined]] = Object.entries(value);
      return [key, kind === 'intValue' ? Number(content) : content];
    }),
  );
}

function hex(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('hex');
}
