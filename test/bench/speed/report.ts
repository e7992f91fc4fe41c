/** docs/benchmarks/speed.md: the figures of one run, with what they were measured on. */
import type { ProxySummary } from './figures.ts';
import { evaluateGoals, summarizeStarts, type Results } from './goals.ts';
import { formatAsMarkdown, tabulate, tabulateOpenLoop, tabulateStarts, tabulateGoals } from './table.ts';

export interface RunConditions {
  readonly date: string;
  readonly machine: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly nodeFlags: readonly string[];
  /** What could not be measured, or not as it should. */
  readonly faults: readonly string[];
}

export function writeReport(results: Results, circumstances: RunConditions): string {
  const { played, openLoop } = results;
  const parts = [
    describe(circumstances),
    ...(circumstances.faults.length === 0 ? [] : [`Faults of this run:\n\n${markdownList(circumstances.faults)}`]),
    '![Throughput of each proxy](speed.svg)',
    '## Goals',
    formatAsMarkdown(tabulateGoals(evaluateGoals(results))),
    ...played.flatMap(({ title, figures }) => [`## ${title}`, formatAsMarkdown(tabulate(figures, titleOf))]),
    ...(openLoop.length === 0 ? [] : describeOpenLoop(openLoop)),
    '## Start and idle memory',
    `From the start of the process until \`/readyz\` says 200, a token from a local server included; of the others, until the first
response through them. Memory is resident, before the first request under load.`,
    formatAsMarkdown(tabulateStarts(summarizeStarts(played))),
  ];
  return `${parts.join('\n\n')}\n`;
}

function describeOpenLoop(figures: Results['openLoop']): string[] {
  return [
    '## Open loop: GET, 64 connections, at a constant rate',
    `Each at half of what it can do at most, and at half of what the sidecar can. A request's time counts from the instant at
which it was due.`,
    formatAsMarkdown(tabulateOpenLoop(figures)),
  ];
}

function titleOf({ title }: ProxySummary): string {
  return title;
}

function describe({ date, machine, rounds, seconds, nodeFlags }: RunConditions): string {
  const flags = nodeFlags.length === 0 ? 'without flags' : `with \`${nodeFlags.join(' ')}\`, as in the image`;
  return `# Speed and memory

Written by \`npm run bench -- --write\` on ${date}.

${markdownList(machine)}

The sidecar runs from \`dist\` with all that is on by default: bearer, governor (\`auto\`), metrics, and the access log, which goes to a file;
"access log off" is \`SIDECAR_LOG_LEVEL=warn\`. It and the bare pass-through run on Node.js ${flags}. The bare pass-through is node:http
and an undici pool with the bearer put in and nothing else (\`test/bench/speed/proxies/bare.child.ts\`). nginx, HAProxy and Caddy have one worker,
connections kept on both sides, a constant bearer and no log; the Node.js peers keep connections, too.

Each proxy has one core to itself; the client (wrk) and the upstream (nginx, 500 bytes of JSON) share the other. All are started afresh for
each scenario, warmed up, and take turns: ${rounds} rounds of ${seconds} s. Figures are medians over the rounds. "× bare" is a ratio within a round, then the
median; that of CPU time is the bare pass-through's time for a request, of this one's, so that more is better in both. "Added" is what comes on top of
asking the upstream without a proxy, and of CPU time on top of the bare pass-through's. CPU time is user and system time of all the proxy's threads and workers, for one request. Peak memory is resident
(VmHWM), from start to end of the scenario.`;
}

function markdownList(lines: readonly string[]): string {
  return lines.map((line) => `- ${line.trim()}`).join('\n');
}
