/** Opens connections to the upstream, with the trust of that moment; fails at once while the circuit breaker is open. */
import type { buildConnector } from 'undici';
import type { Clock } from '../platform/clock.ts';
import { buildEgressConnector } from '../platform/egress/connector.ts';
import type { ProxySelector } from '../platform/egress/proxy-selector.ts';
import { memoizeLast } from '../platform/memoize.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { TlsContextProvider } from '../platform/tls.ts';
import { UpstreamCircuitBreaker, PROBE_INTERVAL_MS, type ConnectDecision } from './circuit-breaker.ts';
import { classifyConnectError, ConnectionFailed, type UpstreamFailure } from './failure.ts';

/** A part of the servers behind a name may have a fault that the others do not have. */
const RECENT_MS = 60_000;

export interface ConnectorOptions {
  readonly clock: Clock;
  readonly baseUrl: URL;
  readonly egress: ProxySelector;
  /** Trust for `https:`; undefined for `http:`. */
  readonly trust: TlsContextProvider | undefined;
  /** Longest time to open a connection, name lookup and TLS included, milliseconds. */
  readonly connectTimeoutMs: number;
  readonly observe: EventObserver;
}

export function createConnector(options: ConnectorOptions): buildConnector.connector {
  const { clock, trust, observe, baseUrl, egress, connectTimeoutMs } = options;
  // A connector keeps TLS sessions to resume: a new trust needs a new connector.
  const connectWith = memoizeLast((secureContext: ReturnType<TlsContextProvider> | undefined) =>
    buildEgressConnector({ destination: baseUrl, egress, secureContext, timeoutMs: connectTimeoutMs, clock }),
  );
  const circuitBreaker = new UpstreamCircuitBreaker();
  let lastFailure: UpstreamFailure | undefined;
  let connectedAt = -Infinity;

  const recordFailure = (decision: ConnectDecision, startedAt: number, fault: Error): UpstreamFailure => {
    const now = clock.now();
    const failure = classifyConnectError(fault, now - connectedAt < RECENT_MS);
    lastFailure = failure;
    if (circuitBreaker.recordFailure(decision, startedAt, now)) {
      const message = `${failure.detail}; requests fail at once now, but for one probe every ${String(PROBE_INTERVAL_MS)} ms`;
      observe({ kind: 'warning', message });
    }
    return failure;
  };

  return (connectOptions, callback) => {
    const startedAt = clock.now();
    const decision = circuitBreaker.decide(startedAt);
    if (decision === 'fail-fast' && lastFailure !== undefined) {
      // The next probe comes later than any retry would.
      const error = new ConnectionFailed({ ...lastFailure, permanent: true });
      // Never synchronously: undici has not finished handling the request.
      queueMicrotask(() => callback(error, null));
      return;
    }
    connectWith(trust?.())(connectOptions, (...outcome) => {
      const [fault] = outcome;
      if (fault !== null) {
        callback(new ConnectionFailed(recordFailure(decision, startedAt, fault)), null);
        return;
      }
      connectedAt = clock.now();
      if (circuitBreaker.recordSuccess()) observe({ kind: 'warning', message: 'the upstream can be reached again' });
      callback(...outcome);
    });
  };
}
