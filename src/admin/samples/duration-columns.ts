/**
 * The samples of the histograms (pure). Those of requests are summed over all series and kept to the second, since a plot shows them; the
 * others are kept by route, to five seconds. All reach back five minutes.
 */
import { SampleTier } from './sample-tier.ts';
import { matchLabels, type DurationReading, type Labels, type SampleSource, type Selector } from './samples.ts';

const REQUESTS = 'request_duration_seconds';
const BY_ROUTE: readonly string[] = ['upstream_duration_seconds', 'queue_wait_seconds'];
const ROUTE_SAMPLE_MS = 5000;
/** Five minutes, and the sample at their beginning. */
const ROUTE_SAMPLES = 62;

interface Group {
  readonly labels: Labels;
  readonly series: DurationReading[];
  /** By bucket; a bucket has a column from its first observation on, or `none` where there was no memory for it. */
  readonly columns: (Uint32Array | 'none' | undefined)[];
}

export class DurationColumns {
  readonly #source: SampleSource;
  readonly #seconds: SampleTier;
  readonly #ofRoutes = new SampleTier(ROUTE_SAMPLE_MS, ROUTE_SAMPLES);
  readonly #reserve: (bytes: number) => boolean;
  readonly #groups = new Map<string, Group[]>();
  /** How many series of a histogram are in a group. */
  readonly #grouped = new Map<string, number>();

  /** @param reserve false: there is no memory for this many bytes */
  constructor(source: SampleSource, seconds: SampleTier, reserve: (bytes: number) => boolean) {
    this.#source = source;
    this.#seconds = seconds;
    this.#reserve = reserve;
  }

  /** Follows a sample of the seconds. */
  sample(now: number): void {
    for (const group of this.#groupsOf(REQUESTS)) this.#sampleGroup(group, this.#seconds);
    if (!this.#ofRoutes.isDue(now)) return;
    this.#ofRoutes.begin(now);
    for (const histogram of BY_ROUTE)
      for (const group of this.#groupsOf(histogram)) this.#sampleGroup(group, this.#ofRoutes);
  }

  quantile(histogram: string, share: number, from: number, selector?: Selector): number | undefined {
    return this.#middleOf(this.#growth(histogram, from, selector), share);
  }

  quantileOfSecond(share: number, sample: number): number | undefined {
    const tier = this.#seconds;
    const [group] = this.#groupsOf(REQUESTS);
    const growth = Array.from(group?.columns ?? [], (column) =>
      typeof column === 'object' ? tier.growthOf(column, sample) : 0,
    );
    return this.#middleOf(growth, share);
  }

  /** Observations; with a selector `le`, those up to that bound. */
  count(histogram: string, from: number, { le = '+Inf', ...selector }: Selector = {}): number {
    const bound = le === '+Inf' ? Infinity : Number(le);
    return this.#growth(histogram, from, selector).reduce(
      (sum, count, bucket) => sum + ((this.#source.bounds[bucket] ?? Infinity) <= bound ? count : 0),
      0,
    );
  }

  #groupsOf(histogram: string): readonly Group[] {
    const series = this.#source.durations.get(histogram) ?? [];
    let groups = this.#groups.get(histogram);
    if (groups === undefined) this.#groups.set(histogram, (groups = []));
    for (const each of series.slice(this.#grouped.get(histogram) ?? 0)) {
      const { route = '' } = histogram === REQUESTS ? {} : each.labels;
      const group = groups.find(({ labels }) => labels.route === route);
      if (group === undefined) groups.push({ labels: { route }, series: [each], columns: [] });
      else group.series.push(each);
    }
    this.#grouped.set(histogram, series.length);
    return groups;
  }

  #sampleGroup({ series, columns }: Group, tier: SampleTier): void {
    for (let bucket = 0; bucket <= this.#source.bounds.length; bucket++) {
      const count = sumBucket(series, bucket);
      if (count === 0) continue;
      const column = (columns[bucket] ??= this.#reserve(4 * tier.length) ? new Uint32Array(tier.length) : 'none');
      if (column !== 'none') column[tier.slot] = count;
    }
  }

  #growth(histogram: string, from: number, selector: Selector = {}): number[] {
    const tier = histogram === REQUESTS ? this.#seconds : this.#ofRoutes;
    const growth = new Array<number>(this.#source.bounds.length + 1).fill(0);
    const found = tier.findAt(from);
    const isSinceStart = found < 0 && tier.first === 0;
    const sample = Math.max(found, tier.first);
    for (const { labels, series, columns } of this.#groupsOf(histogram)) {
      if (!matchLabels(labels, selector)) continue;
      for (const bucket of growth.keys()) {
        const column = columns[bucket];
        if (column === 'none') continue;
        const before = isSinceStart || column === undefined ? 0 : tier.read(column, sample);
        growth[bucket] = (growth[bucket] ?? 0) + ((sumBucket(series, bucket) - before) >>> 0);
      }
    }
    return growth;
  }

  /** The geometric middle of the bucket in which the quantile lies, milliseconds. */
  #middleOf(growth: readonly number[], share: number): number | undefined {
    const total = growth.reduce((sum, count) => sum + count, 0);
    if (total === 0) return undefined;
    const { bounds } = this.#source;
    const rank = Math.max(1, Math.ceil(total * share));
    let seen = 0;
    const bucket = growth.findIndex((count) => (seen += count) >= rank);
    const upper = bounds[bucket] ?? bounds.at(-1) ?? 0;
    const lower = bucket === 0 ? upper / 4 : (bounds[bucket - 1] ?? upper);
    return Math.sqrt(upper * lower) * 1000;
  }
}

function sumBucket(series: readonly DurationReading[], bucket: number): number {
  let sum = 0;
  for (const { buckets } of series) sum += buckets[bucket] ?? 0;
  return sum;
}
