/** W3C Trace Context §3.2: what a valid traceparent is, and how one takes the place of another. */
import { describe, expect, it } from 'vitest';
import { readTraceParent, replaceTraceContext, writeTraceParent } from '../../src/exchange/trace-context.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('reading', () => {
  it.each([
    [`00-${TRACE}-${SPAN}-01`, true],
    [`00-${TRACE}-${SPAN}-00`, false],
    [`00-${TRACE}-${SPAN}-03`, true],
    [`00-${TRACE}-${SPAN}-02`, false],
    [`cc-${TRACE}-${SPAN}-01`, true],
    [`cc-${TRACE}-${SPAN}-01-what-the-future-brings`, true],
  ])('%s is valid', (value, isSampled) => {
    expect(readTraceParent(value)).toEqual({ traceId: TRACE, spanId: SPAN, isSampled });
  });

  it.each([
    undefined,
    '',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}-01.more`,
    `cc-${TRACE}-${SPAN}-01.more`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
    ` 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    [`00-${TRACE}-${SPAN}-01`],
  ])('%s is not', (value) => {
    expect(readTraceParent(value)).toBeUndefined();
  });
});

describe('replacing', () => {
  const parent = { traceId: TRACE, spanId: SPAN, isSampled: true };
  const fields = ['Accept', '*/*', 'TraceParent', 'old', 'tracestate', 'a=1', 'Tracestate', 'b=2', 'X-Tracestate', 'c'];

  it('keeps the state of a trace that goes on, every line of it', () => {
    const written = writeTraceParent(parent);
    expect(replaceTraceContext(fields, parent, true)).toEqual(
      ['Accept', '*/*', 'tracestate', 'a=1', 'Tracestate', 'b=2', 'X-Tracestate', 'c', 'traceparent', written], //
    );
    expect(readTraceParent(written)).toEqual(parent);
  });

  it('drops the state with the trace that it was written for', () => {
    expect(replaceTraceContext(fields, { ...parent, isSampled: false }, false)).toEqual(
      ['Accept', '*/*', 'X-Tracestate', 'c', 'traceparent', `00-${TRACE}-${SPAN}-00`], //
    );
  });
});
