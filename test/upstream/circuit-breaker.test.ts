/** The circuit: when it opens, who may probe, and what closes it. */
import { describe, expect, it } from 'vitest';
import { UpstreamCircuitBreaker, PROBE_INTERVAL_MS } from '../../src/upstream/circuit-breaker.ts';

/** Fails connections begun at each of these instants, each after `tookMs`. @returns which of them opened it */
function fail(circuit: UpstreamCircuitBreaker, starts: readonly number[], tookMs = 0): boolean[] {
  return starts.map((at) => circuit.recordFailure(circuit.decide(at), at, at + tookMs));
}

function opened(): UpstreamCircuitBreaker {
  const circuit = new UpstreamCircuitBreaker();
  fail(circuit, [0, 300, 600, 900, 1000]);
  return circuit;
}

describe('it opens', () => {
  it('with the fifth failure in a row, once they span a second', () => {
    const circuit = new UpstreamCircuitBreaker();
    expect(fail(circuit, [0, 300, 600, 900])).toEqual([false, false, false, false]);
    expect(circuit.decide(999)).toBe('try');
    expect(fail(circuit, [1000])).toEqual([true]);
    expect(circuit.decide(1001)).toBe('fail-fast');
  });

  it('not for any number of failures at one moment: a restart is ridden out by retries', () => {
    const circuit = new UpstreamCircuitBreaker();
    expect(fail(circuit, Array(100).fill(50), 5)).not.toContain(true);
    expect(circuit.decide(900)).toBe('try');
  });

  it('with the fifth time-out of connections that were begun together: those span what they took', () => {
    const circuit = new UpstreamCircuitBreaker();
    const turns = Array.from({ length: 5 }, () => circuit.decide(0));
    expect(turns.map((turn) => circuit.recordFailure(turn, 0, 5000))).toEqual([false, false, false, false, true]);
  });

  it('not when one opens in between', () => {
    const circuit = new UpstreamCircuitBreaker();
    fail(circuit, [0, 500, 1000, 1500]);
    expect(circuit.recordSuccess()).toBe(false);
    expect(fail(circuit, [2000, 2500, 3000, 3500])).not.toContain(true);
  });
});

describe('once open', () => {
  it('one probe per interval is let through, and nothing else', () => {
    const circuit = opened();
    expect(circuit.decide(1000 + PROBE_INTERVAL_MS - 1)).toBe('fail-fast');
    expect([2000, 2000, 2500].map((at) => circuit.decide(at))).toEqual(['probe', 'fail-fast', 'fail-fast']);
    expect(circuit.recordFailure('probe', 2000, 7000)).toBe(false);
    expect([7000, 7999, 8000, 8000].map((at) => circuit.decide(at))).toEqual([
      'fail-fast',
      'fail-fast',
      'probe',
      'fail-fast',
    ]);
  });

  it('stragglers that fail late put no probe off', () => {
    const circuit = opened();
    circuit.recordFailure('try', 500, 1900);
    expect(circuit.decide(2000)).toBe('probe');
    circuit.recordFailure('try', 500, 2100);
    expect(circuit.decide(2200)).toBe('fail-fast');
    expect(circuit.recordFailure('probe', 2000, 2300)).toBe(false);
    expect(circuit.decide(3300)).toBe('probe');
  });

  it.each(['a probe', 'a straggler'])('%s that opens closes it for all', () => {
    const circuit = opened();
    circuit.decide(2000);
    expect(circuit.recordSuccess()).toBe(true);
    expect(circuit.decide(2001)).toBe('try');
    expect(fail(circuit, [2002, 3500])).not.toContain(true);
  });
});
