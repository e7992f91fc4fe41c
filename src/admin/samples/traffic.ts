/** The traffic in numbers, as tiles and plots show it (pure), from the ring of samples. */
import type { SampleRing, Samples, SecondReading } from './sample-ring.ts';
import { quotePattern, type Selector } from './samples.ts';

export type LastMinute = ReturnType<typeof readLastMinute>;

export type RouteTraffic = ReturnType<typeof readRoutes>[number];

export type CodeCount = ReturnType<typeof readCodes>[number];

/** One second of the plots: the columns of `ROW_COLUMNS`, then the rate of each throttle; null = no value. */
export type PlotRow = readonly (number | null)[];

export const PLOTTED_THROTTLES = 4;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The growth of a counter in the time that is looked at. */
type Increase = (metric: string, selector?: Selector) => number;

// Each selector is one object, so that the ring looks it up once for all seconds.
const FOREIGN = 'foreign_responses_total';
/** The requests whose status says success. */
export const PASSED: Selector = { code: '[123]..' };
const CLIENT_ERRORS: Selector = { code: '4..', source: 'upstream' };
const SERVER_ERRORS: Selector = { code: '[5-9]..', source: 'upstream' };
/** A client that left got no response. */
const OWN_ERRORS: Selector = { code: '4[0-8].|49[0-8]|5..', source: 'sidecar' };

/** The definition of success: the status says so, and the response is none that the API did not send. @param ofRoute default: all routes */
export function countSuccesses(increase: Increase, passed = PASSED, ofRoute?: Selector): number {
  // A response is known as foreign at its head, a request ends later.
  return Math.max(0, increase('requests_total', passed) - increase(FOREIGN, ofRoute));
}

/** What the columns of the same names count. `serverErrors`: with foreign responses. `own`: local replies with a status of 400 or above. */
const COUNTS = {
  ok: countSuccesses,
  clientErrors: (increase) => increase('requests_total', CLIENT_ERRORS),
  serverErrors: (increase) => increase('requests_total', SERVER_ERRORS) + increase(FOREIGN),
  own: (increase) => increase('requests_total', OWN_ERRORS),
  sent: (increase) => increase('permits_total'),
  refused: (increase) => increase('rate_limited_total'),
} satisfies Readonly<Record<string, (increase: Increase) => number>>;
type CountName = keyof typeof COUNTS;
const COUNT_NAMES = Object.keys(COUNTS) as CountName[];

/** The columns of a row before the rates of the throttles. `at` is the end in epoch seconds; the counts are per second. */
export const ROW_COLUMNS = ['at', ...COUNT_NAMES, 'p50Ms', 'p95Ms', 'p99Ms', 'queued', 'inFlight'] as const;
export type RowColumn = (typeof ROW_COLUMNS)[number];

/** Sums of the last minute and the percentiles of its latency, milliseconds; undefined without a request. */
export function readLastMinute(samples: Samples) {
  const count = (name: CountName): number =>
    COUNTS[name]((metric, selector) => samples.increase(metric, MINUTE_MS, selector));
  const quantile = (share: number): number | undefined =>
    samples.quantile('request_duration_seconds', share, MINUTE_MS);
  return {
    // Less than a minute after a start.
    spanMs: Math.min(MINUTE_MS, samples.spanMs),
    requests: samples.increase('requests_total', MINUTE_MS),
    ok: count('ok'),
    clientErrors: count('clientErrors'),
    serverErrors: count('serverErrors'),
    own: count('own'),
    refused: count('refused'),
    p50Ms: quantile(0.5),
    p95Ms: quantile(0.95),
    // The medians of its two parts: the attempts, and the wait in the queue.
    upstreamMs: samples.quantile('upstream_duration_seconds', 0.5, MINUTE_MS),
    queuedMs: samples.quantile('queue_wait_seconds', 0.5, MINUTE_MS),
  };
}

/** The last minute of each route that had a request within the hour, in the order of their first requests. */
export function readRoutes(samples: Samples) {
  const byRoute = (metric: string, selector?: Selector, windowMs = MINUTE_MS) =>
    samples.increaseBy('route', metric, windowMs, selector);
  const requests = byRoute('requests_total');
  const [passed, clientErrors, foreign] = [
    byRoute('requests_total', PASSED),
    byRoute('requests_total', CLIENT_ERRORS),
    byRoute(FOREIGN),
  ];
  const all = [...requests.values()].reduce((sum, count) => sum + count, 0);
  return Array.from(byRoute('requests_total', undefined, HOUR_MS).keys(), (route) => {
    const count = requests.get(route) ?? 0;
    const quantile = (share: number): number | undefined =>
      samples.quantile('upstream_duration_seconds', share, MINUTE_MS, { route });
    return {
      route,
      requests: count,
      share: all === 0 ? 0 : count / all,
      perSecond: (count * 1000) / Math.max(1, Math.min(MINUTE_MS, samples.spanMs)),
      ok: Math.max(0, (passed.get(route) ?? 0) - (foreign.get(route) ?? 0)),
      clientErrors: clientErrors.get(route) ?? 0,
      p50Ms: quantile(0.5),
      p95Ms: quantile(0.95),
    };
  });
}

export function readCodes(samples: Samples, windowMs: number) {
  return (['upstream', 'sidecar'] as const).flatMap((source) =>
    Array.from(samples.increaseBy('code', 'requests_total', windowMs, { source }), ([code, count]) => {
      return { code: Number(code), source, count };
    }),
  );
}

/** Oldest first. @param wallOffset what makes epoch milliseconds of monotonic ones @param limit default: all, at most 300 */
export function readPlotRows(
  ring: Pick<SampleRing, 'readSeconds'>,
  throttles: readonly { readonly route: string }[],
  wallOffset: number,
  limit?: number,
): PlotRow[] {
  const routes = throttles.slice(0, PLOTTED_THROTTLES).map(({ route }) => ({ route: quotePattern(route) }));
  return Array.from(ring.readSeconds(limit), (second) => toPlotRow(second, routes, wallOffset));
}

function toPlotRow(second: SecondReading, routes: readonly { readonly route: string }[], wallOffset: number): PlotRow {
  const { at, from } = second;
  const perSecond = (name: CountName) => roundForPlot((COUNTS[name](second.increase) * 1000) / Math.max(1, at - from));
  return [
    Math.round((at + wallOffset) / 1000),
    ...COUNT_NAMES.map(perSecond),
    ...[0.5, 0.95, 0.99].map((share) => roundForPlot(second.quantile(share))),
    second.gauge('queue_depth'),
    second.gauge('in_flight'),
    ...routes.map((route) => roundForPlot(second.gauge('permit_rate', route))),
  ];
}

/** To three digits, which is more than a plot shows; null where there is no finite value. */
function roundForPlot(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Number(value.toPrecision(3));
}
