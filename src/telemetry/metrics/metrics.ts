/**
 * Hears events and answers scrapes: events become counters and histograms (catalogue), states become gauges at the moment
 * of a scrape. The registry is its own, not prom-client's global one. Serving the text is the admin port's business.
 */
import { collectDefaultMetrics, Counter, Registry } from 'prom-client';
import { createEventMetrics, METRIC_PREFIX } from './catalogue.ts';
import type { EventMetrics } from './catalogue.ts';
import type { EventObserver, RequestEnded, SidecarEvent } from '../events.ts';
import { createFleetMetrics } from './fleet-series.ts';
import type { FleetSnapshot, FleetMetrics } from './fleet-series.ts';
import { createGauges } from './gauges.ts';
import type { ThrottleSnapshot, TokenSnapshot } from './gauges.ts';
import { KNOWN_METHODS } from './known-methods.ts';

/** Gauges among prom-client's own that `promtool check metrics` refuses: `_total` is for counters. */
const EXCLUDED_DEFAULT_METRICS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

export interface MetricsOptions {
  readonly version: string;
  /** Configured names. */
  readonly routes: readonly string[];
  /** What the throttles call themselves in events and states. Default: as the routes. */
  readonly throttleNames?: readonly string[];
  /** Configured names. */
  readonly credentials: readonly string[];
  /** Read at every scrape. */
  readonly readTokens: () => readonly TokenSnapshot[];
  /** Read at every scrape. */
  readonly readThrottles: () => readonly ThrottleSnapshot[];
  /** Read at every scrape. Default: no fleet, and no metrics of one. */
  readonly readFleet?: (() => FleetSnapshot) | undefined;
  /** Lines that the log has lost so far. Default: none. */
  readonly readDroppedLines?: () => number;
}

export interface Metrics {
  readonly observe: EventObserver;
  /** All metrics in the Prometheus text format. Rejects when a state cannot be read. */
  render(): Promise<string>;
  /** Of what `render` gives. */
  readonly contentType: string;
}

/** Creates a registry with every metric; it measures the process, too, from now on. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of EXCLUDED_DEFAULT_METRICS) registry.removeSingleMetric(name);
  const catalogue = createEventMetrics(registry, options);
  const showStates = createGauges(registry, options.version);
  const fleet = options.readFleet && createFleetMetrics(registry, options.credentials);
  countDroppedLines(registry, options.readDroppedLines ?? (() => 0));
  return {
    observe(event) {
      countEvent(catalogue, event);
      if (fleet !== undefined) countFleetEvent(fleet, event);
    },
    async render() {
      showStates(options.readTokens(), options.readThrottles());
      if (options.readFleet !== undefined) fleet?.update(options.readFleet());
      return await registry.metrics();
    },
    contentType: registry.contentType,
  };
}

function countEvent(catalogue: EventMetrics, event: SidecarEvent): void {
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
    case 'token-requested':
      catalogue.tokenRequests(event.durationMs, event.credential, event.outcome);
      break;
    case 'token-invalidated':
      catalogue.tokenInvalidations(event.credential, event.reason);
      break;
    case 'credential-rotation':
      if (event.outcome !== 'taken') catalogue.rotationFailures(event.credential);
      break;
    case 'configuration-read':
      catalogue.configReloads(event.outcome);
      break;
    default:
      countPlainEvent(catalogue, event);
  }
}

type CountedInCountEvent =
  | 'request-ended'
  | 'attempt-ended'
  | 'permit-granted'
  | 'token-requested'
  | 'token-invalidated'
  | 'credential-rotation'
  | 'configuration-read';

/** The events that only happen, and take no time worth a histogram. */
function countPlainEvent(catalogue: EventMetrics, event: Exclude<SidecarEvent, { kind: CountedInCountEvent }>): void {
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
    case 'queue-rejected':
      catalogue.queueRejected(event.route, event.reason);
      break;
    case 'insufficient-scope':
      catalogue.insufficientScope(event.route);
      break;
    case 'authorization-overridden':
      catalogue.authorizationOverridden();
      break;
    case 'token-found':
    case 'token-not-asked':
    case 'token-circuit':
    case 'token-scopes-missing':
    case 'fleet-joined':
    case 'fleet-lost':
    case 'fleet-command':
    case 'rate-limit-shape':
    case 'listening':
    case 'draining':
    case 'stopped':
    case 'warning':
      break;
  }
}

function countFleetEvent(fleet: FleetMetrics, event: SidecarEvent): void {
  if (event.kind === 'fleet-command') fleet.commands(event.outcome);
  if (event.kind === 'token-found' && event.from === 'fleet') fleet.tokens(event.credential, 'ok');
  if (event.kind === 'token-not-asked') fleet.tokens(event.credential, event.outcome);
}

function countRequest(catalogue: EventMetrics, event: RequestEnded): void {
  const { route, method, code, source, durationMs, cutBy } = event;
  const knownMethod = KNOWN_METHODS.has(method) ? method : 'other';
  catalogue.requests(durationMs, route, knownMethod, String(code), source);
  if (cutBy !== undefined) catalogue.responsesCut(route, cutBy);
}

function countDroppedLines(registry: Registry, droppedLines: () => number): void {
  let counted = 0;
  new Counter({
    name: `${METRIC_PREFIX}log_lines_dropped_total`,
    help: 'Log lines lost because standard output did not take them: slow, full or closed.',
    registers: [registry],
    collect() {
      const dropped = droppedLines();
      this.inc(dropped - counted);
      counted = dropped;
    },
  });
}
