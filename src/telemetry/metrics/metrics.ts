/**
 * Turns events into counters and histograms (catalogue.ts), and states into gauges at a scrape (gauges.ts). It has its own registry,
 * not prom-client's global one. The admin port serves the text.
 */
import { collectDefaultMetrics, Counter, Registry } from 'prom-client';
import { limitBuckets } from './buckets.ts';
import type { ExposedBuckets } from './buckets.ts';
import { createEventMetrics, METRIC_PREFIX } from './catalogue.ts';
import type { EventMetrics } from './catalogue.ts';
import type { EventObserver, RequestEvent, SidecarEvent } from '../events.ts';
import { createFleetMetrics } from './fleet-series.ts';
import type { FleetSnapshot, FleetMetrics } from './fleet-series.ts';
import { createGauges } from './gauges.ts';
import type { ThrottleSnapshot, TokenSnapshot } from './gauges.ts';
import { KNOWN_METHODS } from './known-methods.ts';

/** Gauges of prom-client that `promtool check metrics` refuses: `_total` is for counters. */
const EXCLUDED_DEFAULT_METRICS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

export interface MetricsOptions {
  readonly version: string;
  /** Configured names. */
  readonly routes: readonly string[];
  /** The names of the throttles in events and states. Default: the routes. */
  readonly throttleNames?: readonly string[];
  /** Configured names. */
  readonly credentials: readonly string[];
  /** Read at every scrape. */
  readonly readTokens: () => readonly TokenSnapshot[];
  /** Read at every scrape. */
  readonly readThrottles: () => readonly ThrottleSnapshot[];
  /** Read at every scrape. Default: no fleet, and no metrics of one. */
  readonly readFleet?: (() => FleetSnapshot) | undefined;
  /** The buckets of all histograms. Default: all. */
  readonly buckets?: ExposedBuckets;
  /** Log lines dropped since the start. Default: 0. */
  readonly readDroppedLines?: () => number;
}

export interface Metrics {
  readonly observe: EventObserver;
  /** All metrics in the Prometheus text format. Rejects when a state cannot be read. */
  render(): Promise<string>;
  /** The content type of that text. */
  readonly contentType: string;
}

/** Creates a registry with every metric, those of the process included. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of EXCLUDED_DEFAULT_METRICS) registry.removeSingleMetric(name);
  const catalogue = createEventMetrics(registry, options);
  const updateGauges = createGauges(registry, options.version);
  const fleet = options.readFleet && createFleetMetrics(registry, options.credentials);
  countDroppedLines(registry, options.readDroppedLines ?? (() => 0));
  limitBuckets(registry, options.buckets ?? 'default');
  return {
    observe(event) {
      switch (event.kind) {
        case 'request-ended':
          countRequest(catalogue, event);
          break;
        case 'attempt-ended':
          catalogue.attempts(event.durationMs, event.outcome);
          break;
        case 'permit-granted':
          catalogue.permits(event.waitedMs, event.route);
          break;
        default:
          countRareEvent(catalogue, event);
          if (fleet !== undefined) countFleetEvent(fleet, event);
      }
    },
    async render() {
      updateGauges(options.readTokens(), options.readThrottles());
      if (options.readFleet !== undefined) fleet?.update(options.readFleet());
      return await registry.metrics();
    },
    contentType: registry.contentType,
  };
}

/** Every request emits these. */
type FrequentEvent = Extract<SidecarEvent, { kind: 'request-ended' | 'attempt-ended' | 'permit-granted' }>;

function countRareEvent(catalogue: EventMetrics, event: Exclude<SidecarEvent, FrequentEvent>): void {
  switch (event.kind) {
    case 'local-reply':
      catalogue.localReplies(event.code);
      break;
    case 'retry':
      catalogue.retries(event.reason);
      break;
    case 'retry-budget-exhausted':
      catalogue.retryBudgetExhausted(event.reason);
      break;
    case 'rate-limited':
      catalogue.rateLimited(event.route);
      break;
    case 'unconfigured-refusal':
      catalogue.unconfiguredRefusals(event.route, String(event.status));
      break;
    case 'queue-rejected':
      catalogue.queueRejected(event.route, event.reason);
      break;
    case 'insufficient-scope':
      catalogue.insufficientScope(event.route);
      break;
    case 'authorization-overridden':
      catalogue.authorizationOverridden();
      break;
    case 'configuration-read':
      catalogue.configReloads(event.outcome);
      break;
    default:
      countTokenEvent(catalogue, event);
  }
}

function countTokenEvent(catalogue: EventMetrics, event: SidecarEvent): void {
  switch (event.kind) {
    case 'token-requested':
      catalogue.tokenRequests(event.durationMs, event.credential, event.outcome);
      break;
    case 'token-invalidated':
      catalogue.tokenInvalidations(event.credential, event.reason);
      break;
    case 'token-not-accepted-yet':
      catalogue.tokenFallbacks(event.credential);
      break;
    case 'credential-rotation':
      if (event.outcome !== 'taken') catalogue.rotationFailures(event.credential);
      break;
    default:
  }
}

function countFleetEvent(fleet: FleetMetrics, event: SidecarEvent): void {
  if (event.kind === 'fleet-command') fleet.commands(event.outcome);
  if (event.kind === 'token-found' && event.from === 'fleet') fleet.tokens(event.credential, 'ok');
  if (event.kind === 'token-not-asked') fleet.tokens(event.credential, event.outcome);
}

function countRequest(catalogue: EventMetrics, event: RequestEvent): void {
  const { route, method, code, source, durationMs, cutBy } = event;
  const knownMethod = KNOWN_METHODS.has(method) ? method : 'other';
  catalogue.requests(durationMs, route, knownMethod, String(code), source);
  if (cutBy !== undefined) catalogue.responsesCut(route, cutBy);
}

function countDroppedLines(registry: Registry, droppedLines: () => number): void {
  let counted = 0;
  new Counter({
    name: `${METRIC_PREFIX}log_lines_dropped_total`,
    help: 'Log lines dropped because standard output was too slow, full or closed.',
    registers: [registry],
    collect() {
      const dropped = droppedLines();
      this.inc(dropped - counted);
      counted = dropped;
    },
  });
}
