/** The page of a whole run: tables in Markdown, and the cases in which a peer is better than ours in both figures. */
import { CLIENTS, type ClientEntry } from './clients/clients.ts';
import type { Figures } from './figures.ts';
import { formatGoodput, formatSeconds, formatShare, formatTable } from './format.ts';
import { isCommonCase, COMMON_LOAD } from './plan.ts';
import type { Result } from './pool.ts';

/** Figures closer than these are taken as equal: they differ from run to run by as much. */
const GOODPUT_MARGIN = 0.002;
const REFUSED_MARGIN = 0.0005;

/** @param versions published versions of the peers, by package name */
export function writeReport(results: readonly Result[], versions: Readonly<Record<string, string>>): string {
  const clients = CLIENTS.filter(({ name }) => results.some(({ job }) => job.client === name));
  const sections = [
    INTRODUCTION,
    describeClients(clients, versions),
    describeSeeds(results),
    '## No hints, load 1.5, one replica',
    'Goodput and share of attempts refused. Clients with a star know the limit.',
    compare(
      results.filter(({ job }) => isCommonCase(job.played)),
      clients,
    ),
    describeDominance(results, clients),
    '## Steps',
    'The limit changes during the run: time until the new limit is used after a step up and a step down, and the share refused in the whole run.',
    compareSteps(results, clients),
    '## No hints, load 0.8, one replica',
    compare(
      results.filter(({ job }) => isPlain(job.played, '0.8×')),
      clients,
    ),
    '## Retry-After on refusals, load 1.5, one replica',
    compare(
      results.filter(({ job }) => isHinted(job.played, 'retry-after-seconds')),
      clients,
    ),
    '## Four independent replicas, no hints, load 1.5',
    'Goodput, share refused and Jain’s index of fairness.',
    compare(
      results.filter(({ job }) => isShared(job.played, 4)),
      clients,
      describeShared,
    ),
    '## bearer-sidecar: every load',
    describeOurs(results, ({ job }) => job.played.conditions.hint === 'none' && job.played.conditions.replicas === 1),
    '## bearer-sidecar: hints and replicas, load 1.5',
    describeOurs(results, ({ job }) => job.played.conditions.hint !== 'none' || job.played.conditions.replicas !== 1),
  ];
  return `${sections.join('\n\n')}\n`;
}

const INTRODUCTION = `# Clients against undocumented rate limits

Made by \`npm run bench:governor\`; not edited by hand. Virtual time and seeded random numbers: the figures are equal on every machine.
Limiters, loads and figures are described in [test/bench/governor](../../test/bench/governor/README.md).

![Goodput against the share of attempts that were refused](governor.svg)`;

function describeClients(clients: readonly ClientEntry[], versions: Readonly<Record<string, string>>): string {
  const lines = clients.map(({ title, note, packages }) => {
    const published = packages.map((name) => `${name} ${versions[name] ?? ''}`.trim()).join(', ');
    return `- **${title}**${published === '' ? '' : ` (${published})`}: ${note}`;
  });
  return lines.join('\n');
}

/** The number of runs behind each mean. */
function describeSeeds(results: readonly Result[]): string {
  const count = (choose: (result: Result) => boolean): string => {
    const counts = new Set(results.filter(choose).map(({ job }) => job.seeds.length));
    return counts.size === 0 ? 'none' : [...counts].toSorted((a, b) => b - a).join(' or ');
  };
  const withKnownLimit = new Set(CLIENTS.filter(({ hasKnownLimit }) => hasKnownLimit).map(({ name }) => name));
  return [
    `Runs of each case, with different seeds: bearer-sidecar ${count(({ job }) => job.client === 'ours')};`,
    `clients without the known limit ${count(({ job }) => job.client !== 'ours' && !withKnownLimit.has(job.client))},`,
    `the higher number with no hints, load 1.5 and one replica;`,
    `clients with the known limit, which hardly differ from run to run, ${count(({ job }) => withKnownLimit.has(job.client))}.`,
  ].join('\n');
}

type Describe = (figures: Figures) => string;

const describePair: Describe = ({ goodput, refusedShare }) =>
  `${formatGoodput(goodput)} / ${formatShare(refusedShare)}`;

const describeShared: Describe = ({ goodput, refusedShare, jain }) =>
  `${formatGoodput(goodput)} / ${formatShare(refusedShare)} / ${jain.toFixed(2)}`;

function compare(results: readonly Result[], clients: readonly ClientEntry[], describe = describePair): string {
  return formatTable(
    ['limiter', ...clients.map(titleOf)],
    titlesOf(results).map((title) => [
      title,
      ...clients.map(({ name }) => {
        const figures = find(results, title, name);
        return figures === undefined ? '' : describe(figures);
      }),
    ]),
  );
}

function compareSteps(results: readonly Result[], clients: readonly ClientEntry[]): string {
  const steps = results.filter(({ job, figures }) => isCommonCase(job.played) && figures.stepUpMs !== undefined);
  return compare(
    steps,
    clients,
    ({ stepUpMs, stepDownMs, refusedShare }) =>
      `${formatSeconds(stepUpMs)} / ${formatSeconds(stepDownMs)} / ${formatShare(refusedShare)}`,
  );
}

/** Lists every case in which a peer without the known limit has both more goodput and fewer refusals than ours. */
function describeDominance(results: readonly Result[], clients: readonly ClientEntry[]): string {
  const peers = clients.filter(({ hasKnownLimit, name }) => !hasKnownLimit && name !== 'ours');
  const beaten = listDominated(results, peers);
  const compared = results.filter(({ job }) => peers.some(({ name }) => name === job.client)).length;
  if (beaten.length === 0)
    return `Of ${compared} comparisons with clients that do not know the limit, in none is one of them better in both figures.`;
  return `Of ${compared} comparisons with clients that do not know the limit, better in both figures:\n\n${beaten.map((line) => `- ${line}`).join('\n')}`;
}

function listDominated(results: readonly Result[], peers: readonly ClientEntry[]): string[] {
  const ours = new Map(results.filter(({ job }) => job.client === 'ours').map((result) => [caseOf(result), result]));
  return results.flatMap((result) => {
    const own = ours.get(caseOf(result))?.figures;
    const { figures } = result;
    if (own === undefined || !peers.some(({ name }) => name === result.job.client)) return [];
    const isBetter =
      figures.goodput > own.goodput + GOODPUT_MARGIN && figures.refusedShare < own.refusedShare - REFUSED_MARGIN;
    return isBetter
      ? [`${result.job.client}: ${caseOf(result)} (${describePair(figures)}, ours ${describePair(own)})`]
      : [];
  });
}

function describeOurs(results: readonly Result[], choose: (result: Result) => boolean): string {
  const rows = results
    .filter((result) => result.job.client === 'ours' && choose(result))
    .map(({ job, figures }) => [
      job.played.title,
      job.played.load,
      job.played.conditions.hint,
      `${job.played.conditions.replicas}`,
      formatGoodput(figures.goodput),
      formatShare(figures.refusedShare),
      formatSeconds(figures.waitP50Ms),
      formatSeconds(figures.waitP99Ms),
      formatSeconds(figures.convergedMs),
      formatSeconds(figures.stepUpMs),
      formatSeconds(figures.stepDownMs),
      figures.jain.toFixed(3),
      formatShare(figures.failedShare),
      `${job.seeds.length}`,
    ]);
  return formatTable(OUR_COLUMNS, rows);
}

const OUR_COLUMNS = [
  'limiter',
  'load',
  'hints',
  'N',
  'goodput',
  'refused',
  'wait p50',
  'p99',
  'converged',
  'step up',
  'down',
  'Jain',
  'failed',
  'seeds',
];

function isPlain({ load, conditions }: Result['job']['played'], wanted: string): boolean {
  return load === wanted && conditions.hint === 'none' && conditions.replicas === 1;
}

function isHinted({ load, conditions }: Result['job']['played'], hint: string): boolean {
  return (load === COMMON_LOAD || load.endsWith('/s')) && conditions.hint === hint && conditions.replicas === 1;
}

function isShared({ load, conditions }: Result['job']['played'], replicas: number): boolean {
  return load === COMMON_LOAD && conditions.hint === 'none' && conditions.replicas === replicas;
}

function titleOf({ title, hasKnownLimit }: ClientEntry): string {
  return hasKnownLimit ? `${title} \\*` : title;
}

function titlesOf(results: readonly Result[]): string[] {
  return [...new Set(results.map(({ job }) => job.played.title))];
}

function find(results: readonly Result[], title: string, client: string): Figures | undefined {
  return results.find(({ job }) => job.played.title === title && job.client === client)?.figures;
}

function caseOf({ job }: Result): string {
  const { title, load, conditions } = job.played;
  return `${title}, load ${load}, hints ${conditions.hint}, N = ${conditions.replicas}`;
}
