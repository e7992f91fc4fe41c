/** Opens connections to the upstream, with the trust of that moment; fails at once while the circuit breaker is open. */
import type { buildConnector } from 'undici';
import type { Clock } from '../platform/clock.ts';
import { buildEgressConnector } from '../platform/egress/connector.ts';
import type { ProxySelector } from '../platform/egress/proxy-selector.ts';
import { memoizeLast } from '../platform/memoize.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { TlsContextProvider } from '../platform/tls.ts';
import { UpstreamCircuitBreaker, PROBE_INTERVAL_MS, type ConnectDecision } from './circuit-breaker.ts';
import { classifyConnectError, CircuitOpenError } from './failure.ts';

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
  let lastFault: Error | undefined;

  const record = (decision: ConnectDecision, startedAt: number, fault: Error | null): void => {
    if (fault === null) {
      if (circuitBreaker.recordSuccess()) observe({ kind: 'warning', message: 'the upstream can be reached again' });
      return;
    }
    lastFault = fault;
    if (!circuitBreaker.recordFailure(decision, startedAt, clock.now())) return;
    const { detail } = classifyConnectError(fault);
    const message = `${detail}; requests fail at once now, but for one probe every ${String(PROBE_INTERVAL_MS)} ms`;
    observe({ kind: 'warning', message });
  };

  return (connectOptions, callback) => {
    const startedAt = clock.now();
    const decision = circuitBreaker.decide(startedAt);
    if (decision === 'fail-fast') {
      // Never synchronously: undici has not finished handling the request.
      queueMicrotask(() => callback(new CircuitOpenError(lastFault), null));
      return;
    }
    connectWith(trust?.())(connectOptions, (...outcome) => {
      record(decision, startedAt, outcome[0]);
      callback(...outcome);
    });
  };
}
