/**
 * The last minutes in numbers (pure), so that a page that is opened later sees the past: events are counted as they come, a few
 * increments each, and once a second what was counted becomes a row of a ring. Rows are told as rates; nothing here grows.
 */
import type { SidecarEvent } from '../../telemetry/events.ts';
import { findBucket, LATENCY_BUCKET_COUNT, readQuantile } from './latency-histogram.ts';
import { MinuteHistory, LOCAL_CODE_OFFSET } from './minutes.ts';
import type { SecondCounts } from './minutes.ts';

/** Of a throttle, what is sampled once a second. */
export interface ThrottleSample {
  readonly route: string;
  /** Permits per second; Infinity while unpaced. */
  readonly rate: number;
  readonly queued: number;
  readonly inFlight: number;
}

/** Sums of the last minute, and what its requests took. */
export interface LastMinute extends Readonly<SecondCounts> {
  /** How much of a minute there is yet, milliseconds. */
  readonly spanMs: number;
  /** Milliseconds; undefined without a request. */
  readonly medianMs: number | undefined;
  readonly p95Ms: number | undefined;
}

/** One second for a plot: `[end as epoch seconds, …]` in the order of `ROW_NAMES`, then the rate of each throttle; null = nothing to show. */
export type PlotRow = readonly (number | null)[];

/** What stands in a row before the throttles' rates; all but the last four per second. */
export const ROW_COLUMNS = [
  ...['at', 'ok', 'clientErrors', 'serverErrors', 'own', 'sent', 'refused'],
  ...['medianMs', 'p95Ms', 'queued', 'inFlight'],
] as const;

/** How many throttles have a line of their own. */
export const PLOTTED_THROTTLES = 4;

const MAX_ROWS = 300;
const MINUTE_ROWS = 60;
const CLIENT_LEFT = 499;
/** Some upstreams make up larger ones. */
const MAX_CODE = LOCAL_CODE_OFFSET - 1;

interface Second {
  readonly counts: Readonly<SecondCounts>;
  readonly spanMs: number;
  readonly latency: Uint32Array;
}

export class History {
  readonly #minutes = new MinuteHistory();
  readonly #rows: PlotRow[] = [];
  /** The last sixty, oldest first. */
  readonly #seconds: Second[] = [];
  #counts = newCounts();
  #latency: Uint32Array = new Uint32Array(LATENCY_BUCKET_COUNT);
  #sampledAt: number;

  /** @param now monotonic milliseconds */
  constructor(now: number) {
    this.#sampledAt = now;
  }

  /** Counts an event. Called for each, so it does no more than that. */
  observe(event: SidecarEvent): void {
    switch (event.kind) {
      case 'request-ended': {
        const code = Math.min(event.code, MAX_CODE);
        const isOwn = event.source === 'sidecar';
        const { codes } = this.#minutes;
        const index = isOwn ? code + LOCAL_CODE_OFFSET : code;
        codes[index] = (codes[index] ?? 0) + 1;
        const bucket = findBucket(event.durationMs);
        this.#latency[bucket] = (this.#latency[bucket] ?? 0) + 1;
        this.#countRequest(code, isOwn);
        return;
      }
      case 'permit-granted':
        this.#counts.sent++;
        return;
      case 'attempt-ended':
        if (isUnanswered(event)) this.#counts.faults++;
        return;
      case 'rate-limited':
        this.#counts.refused++;
        return;
      default:
    }
  }

  /** Ends a second. @param wallNow epoch milliseconds */
  sample(now: number, wallNow: number, gauges: readonly ThrottleSample[]): PlotRow {
    const spanMs = Math.max(1, now - this.#sampledAt);
    const second: Second = { counts: this.#counts, spanMs, latency: this.#latency };
    this.#sampledAt = now;
    this.#counts = newCounts();
    const queued = sumSamples(gauges, 'queued');
    this.#minutes.add(wallNow, second.counts, second.latency, queued);
    this.#latency = this.#pushSecond(second)?.latency.fill(0) ?? new Uint32Array(LATENCY_BUCKET_COUNT);
    const row = toPlotRow(second, wallNow, gauges);
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
    return { ...total, spanMs, medianMs: readQuantile(latency, 0.5), p95Ms: readQuantile(latency, 0.95) };
  }

  /** Of the last minutes by the wall clock. */
  get minutes(): Pick<MinuteHistory, 'read' | 'readCodes'> {
    return this.#minutes;
  }

  #countRequest(code: number, isOwn: boolean): void {
    const counts = this.#counts;
    counts.requests++;
    if (code === CLIENT_LEFT) return;
    if (code < 400) counts.ok++;
    else if (isOwn) counts.own++;
    else if (code < 500) counts.clientErrors++;
    else counts.serverErrors++;
  }

  /** @returns the second that this one pushes out, whose memory is free again */
  #pushSecond(second: Second): Second | undefined {
    this.#seconds.push(second);
    return this.#seconds.length > MINUTE_ROWS ? this.#seconds.shift() : undefined;
  }
}

/** The upstream gave no answer, and not because the sidecar had ended the attempt. */
function isUnanswered({ outcome, isOwn }: Extract<SidecarEvent, { kind: 'attempt-ended' }>): boolean {
  return (outcome === 'unreachable' || outcome === 'reset' || outcome === 'timeout') && isOwn !== true;
}

function newCounts(): SecondCounts {
  return { requests: 0, ok: 0, clientErrors: 0, serverErrors: 0, own: 0, sent: 0, refused: 0, faults: 0 };
}

const COUNT_NAMES = Object.keys(newCounts()) as (keyof SecondCounts)[];

function toPlotRow({ counts, spanMs, latency }: Second, wallNow: number, gauges: readonly ThrottleSample[]): PlotRow {
  const perSecond = (count: number): number => roundForPlot((count * 1000) / spanMs);
  const { ok, clientErrors, serverErrors, own, sent, refused } = counts;
  const quantile = (share: number): number | null =>
    counts.requests === 0 ? null : roundForPlot(readQuantile(latency, share) ?? 0);
  return [
    Math.round(wallNow / 1000),
    ...[ok, clientErrors, serverErrors, own, sent, refused].map(perSecond),
    quantile(0.5),
    quantile(0.95),
    sumSamples(gauges, 'queued'),
    sumSamples(gauges, 'inFlight'),
    ...gauges.slice(0, PLOTTED_THROTTLES).map(({ rate }) => (Number.isFinite(rate) ? roundForPlot(rate) : null)),
  ];
}

function sumSamples(gauges: readonly ThrottleSample[], name: 'queued' | 'inFlight'): number {
  let total = 0;
  for (const gauge of gauges) total += gauge[name];
  return total;
}

/** Three digits are more than a plot shows. */
function roundForPlot(value: number): number {
  return Number(value.toPrecision(3));
}
