/** Tables of the family benchmark: by family, and the limits that are furthest from their goals (pure). */
import { formatGoodput, formatSeconds, formatShare, formatTable } from '../format.ts';
import type { MemberFigures } from './after-learning.ts';
import { FAMILIES, type Member, PLAIN_FAMILIES } from './families.ts';
import { goodputGoal, meetsGoals, refusedGoal } from './goals.ts';

export interface Played {
  readonly member: Member;
  readonly figures: MemberFigures;
}

const WORST = 10;

export function writeFamilyReport(played: readonly Played[]): string {
  const rows = FAMILIES.map((family) =>
    describeGroup(
      family,
      played.filter(({ member }) => member.family === family),
    ),
  );
  const plain = played.filter(({ member }) => PLAIN_FAMILIES.includes(member.family));
  const groups = [...rows, describeGroup('single and steady', plain), describeGroup('all', played)];
  const worst = played.toSorted((one, other) => missOf(other) - missOf(one)).slice(0, WORST);
  return [
    formatTable(
      [
        'family',
        'limits',
        'meet the goals',
        'goodput mean, p50, p10, worst',
        'refused mean, p50, p90',
        'failed p50',
        'wait p95 at 0.8',
        'half rate p50, p90',
      ],
      groups.filter((row) => row !== undefined),
    ),
    'The limits furthest from their goals:',
    worst.map(describeMember).join('\n'),
  ].join('\n\n');
}

export function describeMember({ member, figures }: Played): string {
  const name = `${member.family} ${member.index}`.padEnd(19);
  const mark = meetsGoals(member, figures) ? ' ' : '*';
  return `${mark} ${name} goodput ${formatGoodput(figures.goodput)} refused ${formatShare(figures.refusedShare).padEnd(7)} failed ${formatShare(figures.failedShare).padEnd(7)} half rate ${formatSeconds(figures.halfRateMs).padEnd(6)} ${member.title}`;
}

function describeGroup(name: string, played: readonly Played[]): string[] | undefined {
  if (played.length === 0) return undefined;
  const good = played.filter(({ member, figures }) => meetsGoals(member, figures)).length;
  const [low, high] = wilsonInterval(good, played.length);
  const of = (read: (figures: MemberFigures) => number): ((share: number) => number) => {
    const sorted = played.map(({ figures }) => read(figures)).sort((one, other) => one - other);
    return (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  };
  const meanOf = (read: (figures: MemberFigures) => number): number =>
    played.reduce((sum, { figures }) => sum + read(figures), 0) / played.length;
  const goodput = of((figures) => figures.goodput);
  const refused = of((figures) => figures.refusedShare);
  const half = of((figures) => figures.halfRateMs);
  const failed = of((figures) => figures.failedShare);
  const waits = played.filter(({ member }) => member.conditions.load === 0.8).map(({ figures }) => figures.waitP95Ms);
  const percent = (share: number): string => `${Math.round(share * 100)}`;
  return [
    name,
    `${played.length}`,
    `${percent(good / played.length)} % (${percent(low)}–${percent(high)})`,
    [meanOf(({ goodput: share }) => share), goodput(0.5), goodput(0.1), goodput(0)].map(formatGoodput).join(', '),
    [meanOf(({ refusedShare }) => refusedShare), refused(0.5), refused(0.9)].map(formatShare).join(', '),
    formatShare(failed(0.5)),
    waits.length === 0 ? '–' : formatSeconds(waits.sort((one, other) => one - other)[Math.floor(waits.length / 2)]),
    `${formatSeconds(half(0.5))}, ${formatSeconds(half(0.9))}`,
  ];
}

/** How far a limit is from its goals: the larger of the two misses, in units of the goal's own room. */
function missOf({ member, figures }: Played): number {
  const goodput = (goodputGoal(member) - figures.goodput) / (1 - goodputGoal(member));
  const refused = (figures.refusedShare - refusedGoal(member)) / refusedGoal(member);
  return Math.max(goodput, refused);
}

/** The 95 % interval of a share (Wilson 1927). */
export function wilsonInterval(good: number, count: number): readonly [number, number] {
  const z = 1.96;
  const share = good / count;
  const center = share + (z * z) / (2 * count);
  const spread = z * Math.sqrt((share * (1 - share)) / count + (z * z) / (4 * count * count));
  const scale = 1 + (z * z) / count;
  return [Math.max(0, (center - spread) / scale), Math.min(1, (center + spread) / scale)];
}
