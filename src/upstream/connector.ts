/**
 * Opens connections to the upstream, through the egress proxy if there is one: trust as it is at that moment, and none at all, at once, while the
 * circuit knows the upstream to be away. Who uses the connections is the client's.
 */
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
  /** The way there. */
  readonly egress: ProxySelector;
  /** Trust for `https:`; undefined for `http:`. */
  readonly trust: TlsContextProvider | undefined;
  /** Longest time to open a connection, name lookup and TLS included, milliseconds. */
  readonly connectTimeoutMs: number;
  readonly observe: EventObserver;
}

export function createConnector(options: ConnectorOptions): buildConnector.connector {
  const { clock, trust, observe, baseUrl, egress, connectTimeoutMs } = options;
  // A connector keeps TLS sessions to resume: those of a trust that is no more must go with it.
  const connectWith = memoizeLast((secureContext: ReturnType<TlsContextProvider> | undefined) =>
    buildEgressConnector({ destination: baseUrl, egress, secureContext, timeoutMs: connectTimeoutMs, clock }),
  );
  const circuit = new UpstreamCircuitBreaker();
  let lastFault: Error | undefined;

  const tell = (turn: ConnectDecision, startedAt: number, fault: Error | null): void => {
    if (fault === null) {
      if (circuit.recordSuccess()) observe({ kind: 'warning', message: 'the upstream can be reached again' });
      return;
    }
    lastFault = fault;
    if (!circuit.recordFailure(turn, startedAt, clock.now())) return;
    const { detail } = classifyConnectError(fault);
    const message = `${detail}; requests fail at once now, but for one probe every ${String(PROBE_INTERVAL_MS)} ms`;
    observe({ kind: 'warning', message });
  };

  return (terms, callback) => {
    const startedAt = clock.now();
    const turn = circuit.decide(startedAt);
    if (turn === 'refuse') {
      // Never synchronously: undici is not done with the request that asks.
      queueMicrotask(() => {
        callback(new CircuitOpenError(lastFault), null);
      });
      return;
    }
    connectWith(trust?.())(terms, (...outcome) => {
      tell(turn, startedAt, outcome[0]);
      callback(...outcome);
    });
  };
}
