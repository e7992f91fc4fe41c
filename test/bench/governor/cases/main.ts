/**
 * The cases benchmark: what an upstream does besides keeping one limit, in virtual time, and a plain client beside the sidecar.
 * Run: npm run bench:cases [-- --match noise] [--seeds 2] [--seed TEXT] [--client ours] [--json FILE]
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { runInWorkers } from '../pool.ts';
import { CASES } from './cases.ts';
import { CLIENT_NAMES, type ClientName } from './clients.ts';
import type { RunJob, RunRecord } from './play.ts';
import { type PlayedRun, writeCaseReport } from './report.ts';

const { values } = parseArgs({
  options: {
    match: { type: 'string', default: '' },
    seeds: { type: 'string', default: '2' },
    seed: { type: 'string', default: '' },
    client: { type: 'string', multiple: true, default: ['ours', 'plain'] },
    json: { type: 'string' },
  },
});

const startedAt = performance.now();
const played: PlayedRun[] = [];
await runInWorkers<RunJob>(new URL('worker.ts', import.meta.url), listJobs(), availableParallelism(), (job, reply) => {
  played.push({ job, record: reply as RunRecord });
});
console.log(writeCaseReport(played));
console.log(`\n${played.length} runs, ${Math.round((performance.now() - startedAt) / 1000)} s`);
if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(played, undefined, 1));

function listJobs(): RunJob[] {
  const wanted = new RegExp(values.match, 'v');
  const clients = values.client.map(readClient);
  const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => index + 1);
  return CASES.filter(({ name }) => wanted.test(name)).flatMap(({ name }) =>
    clients.flatMap((client) => seeds.map((seed) => ({ name, client, seed, seedText: values.seed }))),
  );
}

function readClient(text: string): ClientName {
  const found = CLIENT_NAMES.find((name) => name === text);
  if (found === undefined) throw new Error(`--client must be one of ${CLIENT_NAMES.join(', ')}`);
  return found;
}
