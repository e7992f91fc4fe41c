/**
 * Hears events and answers scrapes: events become counters and histograms (catalogue), states become gauges at the moment
 * of a scrape. The registry is its own, not prom-client's global one. Serving the text is the admin port's business.
 */
import { collectDefaultMetrics, Counter, Registry } from 'prom-client';
import { createCatalogue, PREFIX } from './catalogue.ts';
import type { Catalogue } from './catalogue.ts';
import type { Observe, RequestEnded, SidecarEvent } from '../events.ts';
import { createFleetSeries } from './fleet-series.ts';
import type { FleetReading, FleetSeries } from './fleet-series.ts';
import { createGauges } from './gauges.ts';
import type { ThrottleReading, TokenReading } from './gauges.ts';
import { KNOWN_METHODS } from './known-methods.ts';

/** Gauges among prom-client's own that `promtool check metrics` refuses: `_total` is for counters. */
const REFUSED_DEFAULTS = [
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
  readonly tokens: () => readonly TokenReading[];
  /** Read at every scrape. */
  readonly throttles: () => readonly ThrottleReading[];
  /** Read at every scrape. Default: no fleet, and no metrics of one. */
  readonly fleet?: (() => FleetReading) | undefined;
  /** Lines that the log has lost so far. Default: none. */
  readonly logLinesDropped?: () => number;
}

export interface Metrics {
  readonly observe: Observe;
  /** All metrics in the Prometheus text format. Rejects when a state cannot be read. */
  render(): Promise<string>;
  /** Of what `render` gives. */
  readonly contentType: string;
}

/** Creates a registry with every metric; it measures the process, too, from now on. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of REFUSED_DEFAULTS) registry.removeSingleMetric(name);
  const catalogue = createCatalogue(registry, options);
  const showStates = createGauges(registry, options.version);
  const fleet = options.fleet && createFleetSeries(registry, options.credentials);
  countDroppedLines(registry, options.logLinesDropped ?? (() => 0));
  return {
    observe(event) {
      count(catalogue, event);
      if (fleet !== undefined) countFleet(fleet, event);
    },
    async render() {
      showStates(options.tokens(), options.throttles());
      if (options.fleet !== undefined) fleet?.show(options.fleet());
      return await registry.metrics();
    },
    contentType: registry.contentType,
  };
}

function count(catalogue: Catalogue, event: SidecarEvent): void {
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
      countOccurrence(catalogue, event);
  }
}

type CountedAbove =
  | 'request-ended'
  | 'attempt-ended'
  | 'permit-granted'
  | 'token-requested'
  | 'token-invalidated'
  | 'credential-rotation'
  | 'configuration-read';

/** The events that only happen, and take no time worth a histogram. */
function countOccurrence(catalogue: Catalogue, event: Exclude<SidecarEvent, { kind: CountedAbove }>): void {
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

function countFleet(fleet: FleetSeries, event: SidecarEvent): void {
  if (event.kind === 'fleet-command') fleet.commands(event.outcome);
  if (event.kind === 'token-found' && event.from === 'fleet') fleet.tokens(event.credential, 'ok');
  if (event.kind === 'token-not-asked') fleet.tokens(event.credential, event.outcome);
}

function countRequest(catalogue: Catalogue, event: RequestEnded): void {
  const { route, method, code, source, durationMs, cutBy } = event;
  const knownMethod = KNOWN_METHODS.has(method) ? method : 'other';
  catalogue.requests(durationMs, route, knownMethod, String(code), source);
  if (cutBy !== undefined) catalogue.responsesCut(route, cutBy);
}

function countDroppedLines(registry: Registry, droppedLines: () => number): void {
  let counted = 0;
  new Counter({
    name: `${PREFIX}log_lines_dropped_total`,
    help: 'Log lines lost because standard output did not take them: slow, full or closed.',
    registers: [registry],
    collect() {
      const dropped = droppedLines();
      this.inc(dropped - counted);
      counted = dropped;
    },
  });
}
