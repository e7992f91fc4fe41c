/**
 * The family benchmark: clients against limits drawn at random. The open half is for work on the governor; the hidden half is looked at
 * once, when the work is done. Run: npm run bench:family -- --members 250
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { runInWorkers } from '../pool.ts';
import { drawMember, FAMILIES, type Family, type Half, halfOf, type Member } from './families.ts';
import { IMPOSSIBLE_GOODPUT, meetsGoals } from './goals.ts';
import { describeMember, writeFamilyReport, type Played } from './report.ts';
import type { PolicyCosts } from './policy-costs.ts';
import { writeCostReport } from './policy-report.ts';
import type { MemberJob, MemberReply } from './worker.ts';

const { values } = parseArgs({
  options: {
    members: { type: 'string', default: '250' },
    half: { type: 'string', default: 'open' },
    seed: { type: 'string', default: '' },
    family: { type: 'string', multiple: true },
    client: { type: 'string', multiple: true, default: ['ours'] },
    workers: { type: 'string', default: `${availableParallelism()}` },
    json: { type: 'string' },
    cpu: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
});

const half = readHalf(values.half);
const members = listMembers(half, Number(values.members));
let hasImpossible = false;
for (const client of values.client) {
  const startedAt = performance.now();
  const jobs = members.map(({ position }): MemberJob => ({
    index: position,
    seedText: values.seed,
    client,
    measuresCosts: values.cpu,
  }));
  const played: Played[] = [];
  const timed: { family: Family; costs: PolicyCosts }[] = [];
  await runInWorkers<MemberJob>(
    new URL('worker.ts', import.meta.url),
    jobs,
    Number(values.workers),
    ({ index }, reply) => {
      const { figures, costs } = reply as MemberReply;
      const one = { member: drawMember(index, values.seed), figures };
      played.push(one);
      if (costs !== undefined) timed.push({ family: one.member.family, costs });
      if (values.verbose) console.log(describeMember(one));
    },
  );
  const impossible = played.filter(({ figures }) => figures.goodput > IMPOSSIBLE_GOODPUT);
  hasImpossible ||= impossible.length > 0;
  console.log(
    `\n## ${client}, ${half} half, ${played.length} limits, ${Math.round((performance.now() - startedAt) / 1000)} s\n`,
  );
  console.log(writeFamilyReport(played));
  if (values.cpu) console.log(`\n${writeCostReport(timed)}`);
  for (const one of impossible) console.log(`more than possible: ${describeMember(one)}`);
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(played.map(toRow), undefined, 1));
}
process.exitCode = hasImpossible ? 1 : 0;

/** @param position argument of drawMember */
function listMembers(wanted: Half, count: number): { readonly position: number; readonly member: Member }[] {
  const found: { position: number; member: Member }[] = [];
  for (let round = 0; found.length < count; round++) {
    if (halfOf(round) !== wanted) continue;
    for (const [at, family] of FAMILIES.entries()) {
      if (values.family?.includes(family) === false || found.length >= count) continue;
      const position = round * FAMILIES.length + at;
      found.push({ position, member: drawMember(position, values.seed) });
    }
  }
  return found;
}

function readHalf(text: string): Half {
  if (text === 'open' || text === 'hidden') return text;
  throw new Error('--half must be open or hidden');
}

function toRow({ member, figures }: Played) {
  const { family, index, title } = member;
  return { family, index, title, meets: meetsGoals(member, figures), ...figures };
}
