/** The table of products: goodput and refused of each, how many loads meet the goals, and the sums (pure). */
import type { MemberFigures } from '../family/after-learning.ts';
import { GOODPUT_GOAL, REFUSED_GOAL } from '../family/goals.ts';
import { formatGoodput, formatTable } from '../format.ts';

/** The figures of one run. */
export interface PlayedRun {
  readonly product: string;
  /** Name of the load. */
  readonly load: string;
  readonly seed: number;
  readonly figures: MemberFigures;
}

/** Means over the runs of a product. Shares are between 0 and 1. */
export interface ProductFigures {
  readonly product: string;
  readonly goodput: number;
  readonly refusedShare: number;
  readonly loads: number;
  /** Loads whose means over their seeds meet both goals. */
  readonly loadsMet: number;
}

const LOW_GOODPUT = 0.85;
const HIGH_REFUSED = 0.03;

/** In order of the first run of each product. */
export function summarizeProducts(played: readonly PlayedRun[]): ProductFigures[] {
  return [...Map.groupBy(played, ({ product }) => product)].map(([product, runs]) => {
    const loads = [...Map.groupBy(runs, ({ load }) => load).values()].map(averagesOf);
    const loadsMet = loads.filter((load) => load.goodput >= GOODPUT_GOAL && load.refusedShare <= REFUSED_GOAL).length;
    return { product, ...averagesOf(runs), loads: loads.length, loadsMet };
  });
}

export function writeProductReport(played: readonly PlayedRun[]): string {
  const products = summarizeProducts(played);
  const met = products.reduce((sum, { loadsMet }) => sum + loadsMet, 0);
  const loads = products.reduce((sum, product) => sum + product.loads, 0);
  const { goodput, refusedShare } = averagesOf(played);
  const mean = ['**mean**', formatGoodput(goodput), formatPercent(refusedShare), `${met} of ${loads}`];
  const rows = products.map((figures) => [
    figures.product,
    formatGoodput(figures.goodput),
    formatPercent(figures.refusedShare),
    `${figures.loadsMet}`,
  ]);
  return [
    formatTable(['product', 'goodput', 'refused, %', 'loads that meet the goals'], [...rows, mean]),
    listOf(`Goodput below ${LOW_GOODPUT}`, products, (product) => product.goodput < LOW_GOODPUT),
    listOf(`More than ${HIGH_REFUSED * 100} % refused`, products, (product) => product.refusedShare > HIGH_REFUSED),
  ].join('\n\n');
}

export function describeRun({ product, load, seed, figures }: PlayedRun): string {
  const { goodput, refusedShare, measured } = figures;
  return `${product.padEnd(36)} ${load.padEnd(10)} seed ${seed} goodput ${formatGoodput(goodput)} refused ${formatPercent(refusedShare)} % measured ${measured}`;
}

function listOf(
  title: string,
  products: readonly ProductFigures[],
  isListed: (product: ProductFigures) => boolean,
): string {
  const names = products.filter(isListed).map(({ product }) => product);
  return `${title}: ${names.length}${names.length === 0 ? '' : ` (${names.join('; ')})`}`;
}

function averagesOf(runs: readonly PlayedRun[]) {
  const mean = (read: (figures: MemberFigures) => number): number =>
    runs.reduce((sum, { figures }) => sum + read(figures), 0) / runs.length;
  return { goodput: mean(({ goodput }) => goodput), refusedShare: mean(({ refusedShare }) => refusedShare) };
}

function formatPercent(share: number): string {
  return (share * 100).toFixed(2);
}
