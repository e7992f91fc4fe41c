/**
 * The hostile corpus against the sidecar and its peers, each before the same witness of bytes. Exits 1 when the sidecar
 * lets one through, drops one that must arrive, or falls.
 * Run: npm run bench:hostile [-- --list], which names the cases as well; --write writes docs/benchmarks/robustness.md.
 */
import { installMissingPrograms } from '../../tools/test-run/test-programs.ts';
import { CORPUS } from '../hostile/corpus/corpus.ts';
import type { HostileCase } from '../hostile/corpus/case.ts';
import { CONTENDERS } from '../hostile/contenders.ts';
import type { Contender } from '../hostile/contenders.ts';
import { arrivedAsMeant, reachedUpstream, send } from '../hostile/case-run.ts';
import type { Outcome } from '../hostile/case-run.ts';
import { writeRobustness } from './robustness-page.ts';
import { formatAsMarkdown } from './speed/table.ts';

interface ProxyScore {
  /** Ids of the cases. */
  readonly reachedByRfc: string[];
  readonly reachedByHouse: string[];
  readonly notForwarded: string[];
  readonly notServedAfter: string[];
}

/** Whether to name the cases too. */
const names = process.argv.includes('--list');
const count = (isOne: (hostile: HostileCase) => boolean): number => CORPUS.filter(isOne).length;
const byRfc = count(({ expected }) => expected.kind === 'refuse' && expected.by === 'rfc');
const byHouse = count(({ expected }) => expected.kind === 'refuse' && expected.by === 'house');
const toForward = count(({ expected }) => expected.kind === 'forward');

async function run(contender: Contender): Promise<ProxyScore> {
  const score: ProxyScore = { reachedByRfc: [], reachedByHouse: [], notForwarded: [], notServedAfter: [] };
  let running = await contender.start();
  for (const hostile of CORPUS) {
    const outcome = await send(running.url, running.witness, hostile);
    recordResult(score, outcome);
    if (outcome.isAlive) continue;
    await running[Symbol.asyncDispose]();
    running = await contender.start();
  }
  await running[Symbol.asyncDispose]();
  return score;
}

function recordResult(score: ProxyScore, outcome: Outcome): void {
  const { expected, id } = outcome.hostile;
  if (!outcome.isAlive) score.notServedAfter.push(id);
  if (expected.kind === 'refuse' && reachedUpstream(outcome))
    (expected.by === 'rfc' ? score.reachedByRfc : score.reachedByHouse).push(id);
  if (expected.kind === 'forward' && !arrivedAsMeant(outcome, expected.requests)) score.notForwarded.push(id);
}

for (const line of installMissingPrograms()) console.error(`!!! ${line}`);
console.log(`${CORPUS.length} requests, one at a time, a good one after each:`);
console.log(`  ${byRfc} must be refused by the RFCs (a MUST or SHOULD, or outside of the grammar);`);
console.log(
  `  ${byHouse} more are refused by the sidecar where the RFCs leave a choice, and by its guard for Host, Origin,`,
);
console.log('  paths and upgrades, which the peers are not configured for;');
console.log(`  ${toForward} must arrive once with their body; the rest are left open.`);
const table: Record<string, Record<string, number>> = {};
const rows: string[][] = [];
for (const contender of CONTENDERS) {
  const startedAt = performance.now();
  const score = await run(contender);
  table[contender.name] = {
    [`reached the upstream, of ${byRfc} by RFC`]: score.reachedByRfc.length,
    [`of ${byHouse} by the sidecar's rules`]: score.reachedByHouse.length,
    [`not forwarded, of ${toForward}`]: score.notForwarded.length,
    'good request not served after': score.notServedAfter.length,
    seconds: Math.round((performance.now() - startedAt) / 1000),
  };
  rows.push([
    contender.name.replace(/[/ ](?:version )?(?=\d)/, ' '),
    String(score.reachedByRfc.length),
    String(score.notServedAfter.length),
  ]);
  if (names) console.log(contender.name, score);
  if (contender === CONTENDERS[0] && Object.values(score).flat().length > 0) process.exitCode = 1;
}
console.table(table);
if (process.argv.includes('--write')) await writeRobustness('hostile', describeScores());

function describeScores(): string {
  const head = ['proxy', `of ${byRfc} by RFC`, 'good request not served after'];
  return `${CORPUS.length} raw requests (\`test/hostile/corpus\`) are sent one at a time to each proxy, before a server that records every byte.
RFC 9110, 9112 or 3986 require ${byRfc} of them to be refused. The first column counts how many of these reached the server, the second the good
requests that were not served after a hostile one.

${formatAsMarkdown([head, ...rows])}`;
}
