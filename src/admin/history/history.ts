/**
 * The last minutes in numbers (pure), so that a page that is opened later shows the past. Events increment counters; once a second
 * the counters become a row of rates. Memory is bounded.
 */
import type { SidecarEvent } from '../../telemetry/events.ts';
import type { ThrottleState } from '../../throttle/throttle.ts';
import { findBucket, LATENCY_BUCKET_COUNT, readPercentiles, readQuantile } from './latency-histogram.ts';
import { MinuteHistory, LOCAL_CODE_OFFSET } from './minutes.ts';
import type { SecondCounts } from './minutes.ts';

/** The part of a throttle's state that is sampled once a second. */
export type ThrottleSample = Pick<ThrottleState, 'route' | 'rate' | 'queued' | 'inFlight'>;

/** Sums of the last minute and the percentiles of its latency. */
export interface LastMinute extends Readonly<SecondCounts> {
  /** Length of the recorded time, milliseconds; less than a minute after a start. */
  readonly spanMs: number;
  /** Milliseconds; undefined without a request. */
  readonly p50Ms: number | undefined;
  readonly p95Ms: number | undefined;
  readonly p99Ms: number | undefined;
}

/** One second of the plots: the columns of `ROW_COLUMNS`, then the rate of each throttle; null = no value. */
export type PlotRow = readonly (number | null)[];

/** The columns of a row before the rates of the throttles. `at` is the end in epoch seconds; `ok` to `refused` are per second. */
export const ROW_COLUMNS = [
  ...['at', 'ok', 'clientErrors', 'serverErrors', 'own', 'sent', 'refused'],
  ...['p50Ms', 'p95Ms', 'p99Ms', 'queued', 'inFlight'],
] as const;

/** How many throttles have a line in the plot. */
export const PLOTTED_THROTTLES = 4;

const MAX_ROWS = 300;
const MINUTE_ROWS = 60;
const CLIENT_LEFT = 499;
/** Some upstreams send larger status codes. */
const MAX_CODE = LOCAL_CODE_OFFSET - 1;

interface Second {
  readonly counts: Readonly<SecondCounts>;
  readonly spanMs: number;
  readonly latency: Uint32Array;
}

export class History {
  readonly #minutes = new MinuteHistory();
  readonly #rows: PlotRow[] = [];
  /** The last 60 seconds, oldest first. */
  readonly #seconds: Second[] = [];
  #counts = newCounts();
  #latency: Uint32Array = new Uint32Array(LATENCY_BUCKET_COUNT);
  #sampledAt: number;

  /** @param now monotonic milliseconds */
  constructor(now: number) {
    this.#sampledAt = now;
  }

  /** Counts an event. */
  observe(event: SidecarEvent): void {
    switch (event.kind) {
      case 'request-ended': {
        const code = Math.min(event.code, MAX_CODE);
        const isLocal = event.source === 'sidecar';
        const { codes } = this.#minutes;
        const index = isLocal ? code + LOCAL_CODE_OFFSET : code;
        codes[index] = (codes[index] ?? 0) + 1;
        const bucket = findBucket(event.durationMs);
        this.#latency[bucket] = (this.#latency[bucket] ?? 0) + 1;
        this.#countRequest(code, isLocal);
        return;
      }
      case 'permit-granted':
        this.#counts.sent++;
        return;
      case 'attempt-ended':
        if (isWithoutResponse(event)) this.#counts.faults++;
        return;
      case 'rate-limited':
        this.#counts.refused++;
        return;
      default:
    }
  }

  /** Ends a second. @param wallNow epoch milliseconds */
  sample(now: number, wallNow: number, throttles: readonly ThrottleSample[]): PlotRow {
    const spanMs = Math.max(1, now - this.#sampledAt);
    const second: Second = { counts: this.#counts, spanMs, latency: this.#latency };
    this.#sampledAt = now;
    this.#counts = newCounts();
    const queued = sumSamples(throttles, 'queued');
    this.#minutes.add(wallNow, second.counts, second.latency, queued);
    this.#latency = this.#pushSecond(second)?.latency.fill(0) ?? new Uint32Array(LATENCY_BUCKET_COUNT);
    const row = toPlotRow(second, wallNow, throttles);
    this.#rows.push(row);
    if (this.#rows.length > MAX_ROWS) this.#rows.shift();
    return row;
  }

  /** Oldest first, at most 300. */
  rows(): readonly PlotRow[] {
    return this.#rows;
  }

  lastMinute(): LastMinute {
    const total = newCounts();
    const latency = new Uint32Array(LATENCY_BUCKET_COUNT);
    let spanMs = 0;
    for (const second of this.#seconds) {
      spanMs += second.spanMs;
      for (const name of COUNT_NAMES) total[name] += second.counts[name];
      if (second.counts.requests === 0) continue;
      for (let bucket = 0; bucket < LATENCY_BUCKET_COUNT; bucket++)
        latency[bucket] = (latency[bucket] ?? 0) + (second.latency[bucket] ?? 0);
    }
    return { ...total, spanMs, ...readPercentiles(latency) };
  }

  /** The last minutes by the wall clock. */
  get minutes(): Pick<MinuteHistory, 'read' | 'readCodes'> {
    return this.#minutes;
  }

  #countRequest(code: number, isLocal: boolean): void {
    const counts = this.#counts;
    counts.requests++;
    if (code === CLIENT_LEFT) return;
    if (code < 400) counts.ok++;
    else if (isLocal) counts.own++;
    else if (code < 500) counts.clientErrors++;
    else counts.serverErrors++;
  }

  /** @returns the second that drops out, whose memory can be reused */
  #pushSecond(second: Second): Second | undefined {
    this.#seconds.push(second);
    return this.#seconds.length > MINUTE_ROWS ? this.#seconds.shift() : undefined;
  }
}

/** The upstream sent no response, and the sidecar did not end the attempt itself. */
function isWithoutResponse({ outcome, isOwn }: Extract<SidecarEvent, { kind: 'attempt-ended' }>): boolean {
  return (outcome === 'unreachable' || outcome === 'reset' || outcome === 'timeout') && isOwn !== true;
}

function newCounts(): SecondCounts {
  return { requests: 0, ok: 0, clientErrors: 0, serverErrors: 0, own: 0, sent: 0, refused: 0, faults: 0 };
}

const COUNT_NAMES = Object.keys(newCounts()) as (keyof SecondCounts)[];

function toPlotRow(
  { counts, spanMs, latency }: Second,
  wallNow: number,
  throttles: readonly ThrottleSample[],
): PlotRow {
  const perSecond = (count: number): number => roundForPlot((count * 1000) / spanMs);
  const { ok, clientErrors, serverErrors, own, sent, refused } = counts;
  const quantile = (share: number): number | null =>
    counts.requests === 0 ? null : roundForPlot(readQuantile(latency, share) ?? 0);
  return [
    Math.round(wallNow / 1000),
    ...[ok, clientErrors, serverErrors, own, sent, refused].map(perSecond),
    quantile(0.5),
    quantile(0.95),
    quantile(0.99),
    sumSamples(throttles, 'queued'),
    sumSamples(throttles, 'inFlight'),
    ...throttles.slice(0, PLOTTED_THROTTLES).map(({ rate }) => (Number.isFinite(rate) ? roundForPlot(rate) : null)),
  ];
}

function sumSamples(throttles: readonly ThrottleSample[], name: 'queued' | 'inFlight'): number {
  let total = 0;
  for (const throttle of throttles) total += throttle[name];
  return total;
}

/** To three digits, which is more than a plot shows. */
function roundForPlot(value: number): number {
  return Number(value.toPrecision(3));
}
