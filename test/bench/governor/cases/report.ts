/** The table of the cases benchmark (pure). */
import { formatGoodput, formatShare, formatTable } from '../format.ts';
import { CASES } from './cases.ts';
import type { ClientName } from './clients.ts';
import type { RunJob, RunRecord, Span } from './play.ts';

export interface PlayedRun {
  readonly job: RunJob;
  readonly record: RunRecord;
}

const HEADER = [
  'case',
  'goodput',
  'refused',
  'in the second half',
  'worst 5 min',
  'failed',
  'plain: goodput',
  'plain: refused',
];
const NONE = '–';

/** One row for each case, over all its seeds. */
export function writeCaseReport(played: readonly PlayedRun[]): string {
  const rows = CASES.flatMap(({ name, limit }) => {
    const ours = listRecords(played, name, 'ours');
    const plain = listRecords(played, name, 'plain');
    if (ours.length + plain.length === 0) return [];
    // Where there is a limit, the plain client gets its accepted calls by exceeding it.
    const worst = limit === undefined ? worstShare(ours, plain) : undefined;
    return [
      [
        name,
        describeGoodput(ours),
        describeShare(refusedShare(ours)),
        describeShare(refusedShare(ours, 0.5)),
        describeShare(worst),
        describeShare(failedShare(ours)),
        describeGoodput(plain),
        describeShare(refusedShare(plain)),
      ],
    ];
  });
  return formatTable(HEADER, rows);
}

function listRecords(played: readonly PlayedRun[], name: string, client: ClientName): RunRecord[] {
  return played.filter(({ job }) => job.name === name && job.client === client).map(({ record }) => record);
}

function describeGoodput(records: readonly RunRecord[]): string {
  if (records.length === 0) return NONE;
  const accepted = sum(records.flatMap(({ spans }) => spans.map((span) => span.accepted)));
  return formatGoodput(accepted / sum(records.map(({ possible }) => possible)));
}

function describeShare(share: number | undefined): string {
  return share === undefined ? NONE : formatShare(share);
}

/** @param from the part of each run that is left out. Default: none */
function refusedShare(records: readonly RunRecord[], from = 0): number | undefined {
  if (records.length === 0) return undefined;
  const counted = records.flatMap(({ spans }) => spans.slice(from * spans.length));
  const attempts = sum(counted.map((span) => span.attempts));
  return sum(counted.map((span) => span.refused)) / Math.max(1, attempts);
}

function failedShare(records: readonly RunRecord[]): number | undefined {
  if (records.length === 0) return undefined;
  return sum(records.map(({ failed }) => failed)) / sum(records.map(({ calls }) => calls));
}

/** The least share of the plain client's accepted calls in a span after the first, of the same draws of arrivals. */
function worstShare(ours: readonly RunRecord[], plain: readonly RunRecord[]): number | undefined {
  const shares = ours.flatMap(({ spans }, run) =>
    spans.slice(1).flatMap(({ accepted }, index) => {
      const promised: Span | undefined = plain[run]?.spans[index + 1];
      return promised === undefined ? [] : [accepted / promised.accepted];
    }),
  );
  return shares.length === 0 ? undefined : Math.min(...shares);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
