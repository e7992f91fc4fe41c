/** Reads and writes the headers of a trace (W3C Trace Context, levels 1 and 2). Pure. */

export interface TraceParent {
  /** 32 hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 hexadecimal digits, not all zero. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

const TRACE_PARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const SAMPLED = 1;

/**
 * Reads a `traceparent`; undefined when there is none or it is not valid. Later versions may have more at their end.
 * @param value of a repeated header, joined or as a list, which is not valid
 */
export function readTraceParent(value: string | readonly string[] | undefined): TraceParent | undefined {
  if (typeof value !== 'string') return undefined;
  const [, version, traceId, spanId, flags, rest] = TRACE_PARENT.exec(value) ?? [];
  if (traceId === undefined || spanId === undefined || (version === '00' && rest !== undefined)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags ?? '', 16) & SAMPLED) === SAMPLED };
}

export function writeTraceParent({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

/**
 * Replaces the trace context of a request.
 * @param headers flat list [name, value, …]
 * @param keepsState whether `tracestate` stays: it is valid only for the trace that it was written for
 */
export function replaceTraceContext(headers: readonly string[], parent: TraceParent, keepsState: boolean): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    if (name.length === 11 && name.toLowerCase() === 'traceparent') continue;
    if (!keepsState && name.length === 10 && name.toLowerCase() === 'tracestate') continue;
    kept.push(name, headers[at + 1] ?? '');
  }
  kept.push('traceparent', writeTraceParent(parent));
  return kept;
}
