/**
 * Limits by operation, drawn and played in virtual time, without and with learned lanes.
 * Run: npm run bench:operations [-- --seed TEXT] [--cases 12] [--kind own] [--replicas 1] [--show]
 */
import { parseArgs } from 'node:util';
import { createRandom } from '../governor/seeded.ts';
import { drawCase, KINDS, type OperationsCase } from './cases.ts';
import { DURATION_MS, type OperationResult, play } from './play.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: 'open' },
    cases: { type: 'string', default: '12' },
    kind: { type: 'string' },
    replicas: { type: 'string', default: '1' },
    show: { type: 'boolean', default: false },
  },
});

/** What one kind of cases came to, without lanes and with them. */
interface Sum {
  accepted: number;
  possible: number;
  refused: number;
  worst: number;
  readonly freeWaits: number[];
}

console.log(
  '| kind | lanes | of what is possible | worst case | refused | wait of free calls, p99 ms |\n|---|---|---|---|---|---|',
);
for (const kind of KINDS.filter((each) => values.kind === undefined || each === values.kind)) {
  for (const lanes of [false, 'auto', true] as const) {
    const sum: Sum = { accepted: 0, possible: 0, refused: 0, worst: Infinity, freeWaits: [] };
    for (let number = 1; number <= Number(values.cases); number++) {
      const played = drawCase(kind, createRandom(number, `case ${kind} ${values.seed}`));
      const results = await play(played, number, lanes, Number(values.replicas));
      add(sum, played, results);
      if (values.show) console.log(describe(played, results));
    }
    const waits = sum.freeWaits.sort((one, other) => one - other);
    const p99 = waits[Math.floor(waits.length * 0.99)];
    const share = (sum.accepted / sum.possible).toFixed(3);
    console.log(
      `| ${kind} | ${String(lanes)} | ${share} | ${sum.worst.toFixed(2)} | ${sum.refused} | ${p99?.toFixed(0) ?? '–'} |`,
    );
  }
}

function add(sum: Sum, played: OperationsCase, results: readonly OperationResult[]): void {
  const accepted = results.reduce((total, result) => total + result.accepted, 0);
  const possible = countPossible(played, results);
  sum.accepted += accepted;
  sum.possible += possible;
  sum.worst = Math.min(sum.worst, accepted / possible);
  for (const [index, result] of results.entries()) {
    sum.refused += result.refused;
    if (!played.limits.some(({ operations }) => operations.includes(index))) sum.freeWaits.push(...result.waits);
  }
}

/** Calls that the limits allow of those that were made, the narrower limits first. */
function countPossible({ limits, operations }: OperationsCase, results: readonly OperationResult[]): number {
  const allowed = results.map(({ calls }) => calls);
  for (const limit of limits.toSorted((one, other) => one.operations.length - other.operations.length)) {
    const until = Math.max(...limit.operations.map((index) => operations[index]?.until ?? DURATION_MS / 1000));
    const most = limit.burst + limit.perSecond * until;
    const wanted = limit.operations.reduce((sum, index) => sum + (allowed[index] ?? 0), 0);
    for (const index of limit.operations) allowed[index] = (allowed[index] ?? 0) * Math.min(1, most / wanted);
  }
  return allowed.reduce((sum, count) => sum + count, 0);
}

function describe({ roundTripMs, statesWait, limits }: OperationsCase, results: readonly OperationResult[]): string {
  const rows = results.map(({ accepted, calls, refused }, index) => {
    const own = limits.flatMap(({ operations, perSecond }) =>
      operations.includes(index) ? [perSecond.toFixed(1)] : [],
    );
    return `${accepted}/${calls} (${refused} refused, limits ${own.join(' and ') || 'none'})`;
  });
  return `  ${roundTripMs.toFixed(0)} ms, ${statesWait ? 'states waits' : 'no hint'}: ${rows.join('; ')}`;
}
