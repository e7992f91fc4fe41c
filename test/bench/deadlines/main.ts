/**
 * What clients get when more is offered than the limit allows and calls have deadlines, in virtual time. `carried out` and `goodput` are shares
 * of what the limit allows: calls that the upstream carried out, and calls that were served; `in vain` is the share of those carried
 * out whose response came too late.
 * Run: npm run bench:deadlines [-- --rate auto] [-- --seed 2]
 */
import { parseArgs } from 'node:util';
import { formatShare, formatTable } from '../governor/format.ts';
import { type CallKind, type DeadlineResult, hiddenLimit, playDeadlines } from '../../throttle/deadline-world.ts';

const { values } = parseArgs({
  options: { rate: { type: 'string', multiple: true }, seed: { type: 'string', default: '1' } },
});

const LIMIT = 20;
/** `auto` has learned the limit by then. */
const COUNTED_FROM_MS = 30_000;
const DURATION_MS = 90_000;

interface Case {
  readonly latencyMs: number;
  /** Latencies are spread evenly from `latencyMs` to this. Default: a tenth of jitter. */
  readonly longestMs?: number;
  readonly deadlineMs: number;
  readonly offered: number;
}

const CASES: readonly Case[] = [
  ...[3000, 3500, 5000, 20_000, 60_000].map((deadlineMs) => ({
    latencyMs: 1000,
    longestMs: 3000,
    deadlineMs,
    offered: 3,
  })),
  ...[20, 300, 2000].map((latencyMs) => ({ latencyMs, deadlineMs: 5000, offered: 3 })),
  ...[1000, 3000, 10_000, 30_000].flatMap((deadlineMs) =>
    [20, 300, 2000].map((latencyMs) => ({ latencyMs, deadlineMs, offered: 3 })),
  ),
  ...[1.1, 2, 5, 20].flatMap((offered) =>
    [20, 300, 2000].map((latencyMs) => ({ latencyMs, deadlineMs: 5000, offered })),
  ),
];

for (const rate of values.rate ?? ['20', 'auto']) {
  console.log(`\nthrottle.rate: ${rate}, limit ${LIMIT}/s, ${(DURATION_MS - COUNTED_FROM_MS) / 1000} s counted\n`);
  const rows: string[][] = [];
  for (const each of CASES) rows.push(describe(each, await play(rate, [kindOf('/calls', each)])));
  console.log(
    formatTable(
      ['latency', 'deadline', 'offered', 'carried out', 'goodput', 'in vain', 'refused at once', 'timed out'],
      rows,
    ),
  );
  console.log();
  console.log(
    formatTable(['mixed calls', 'offered', 'served', 'in vain', 'refused or timed out'], await playMixed(rate)),
  );
}

function kindOf(path: string, { latencyMs, longestMs, deadlineMs, offered }: Case): CallKind {
  const from = longestMs === undefined ? latencyMs * 0.95 : latencyMs;
  const to = longestMs ?? latencyMs * 1.05;
  return {
    path,
    perSecond: offered * LIMIT,
    deadlineMs,
    latencyMs: (_, random) => from + (to - from) * random(),
  };
}

function play(rate: string, kinds: readonly CallKind[], durationMs = DURATION_MS): Promise<DeadlineResult> {
  return playDeadlines({
    ...{ kinds, durationMs, countedFromMs: COUNTED_FROM_MS, seed: Number(values.seed) },
    throttle: { rate: rate === 'auto' ? 'auto' : Number(rate) },
    ...(rate === 'auto' ? { limiter: hiddenLimit(LIMIT) } : {}),
  });
}

function describe(
  { latencyMs, longestMs, deadlineMs, offered }: Case,
  { figures, executed }: DeadlineResult,
): string[] {
  const { served = 0, inVain = 0, refusedAtOnce = 0, timedOut = 0 } = figures[0] ?? {};
  const possible = (LIMIT * (DURATION_MS - COUNTED_FROM_MS)) / 1000;
  const latency = longestMs === undefined ? latencyMs : `${latencyMs} to ${longestMs}`;
  return [
    ...[`${latency} ms`, `${deadlineMs / 1000} s`, `${offered} ×`, formatShare(executed / possible)],
    ...[formatShare(served / possible), formatShare(inVain / Math.max(1, executed))],
    ...[`${refusedAtOnce}`, `${timedOut}`],
  ];
}

/** The same quick calls beside slow ones, and beside as many quick ones: what the time of the slow ones costs them. */
async function playMixed(rate: string): Promise<string[][]> {
  const rows: string[][] = [];
  for (const [quickShare, slowShare] of [
    [0.45, 0.45],
    [0.75, 0.2],
    [0.75, 1.5],
    [1.5, 1.5],
  ] as const)
    for (const deadlineMs of [1000, 5000]) {
      const quick = kindOf('/quick', { latencyMs: 20, deadlineMs, offered: quickShare });
      const [beside, besideQuick] = await Promise.all(
        [2000, 20].map((latencyMs) =>
          play(rate, [quick, kindOf('/slow', { latencyMs, deadlineMs: 5000, offered: slowShare })]),
        ),
      );
      for (const [title, figures] of [
        [`quick, ${deadlineMs / 1000} s, beside slow`, beside?.figures[0]],
        [`quick, ${deadlineMs / 1000} s, beside quick`, besideQuick?.figures[0]],
        ['slow, 5 s', beside?.figures[1]],
      ] as const)
        rows.push([
          ...[title, `${quickShare} × and ${slowShare} ×`, `${figures?.served} of ${figures?.calls}`],
          ...[`${figures?.inVain}`, `${(figures?.refusedAtOnce ?? 0) + (figures?.timedOut ?? 0)}`],
        ]);
    }
  return rows;
}
