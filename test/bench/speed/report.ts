/** docs/benchmarks/speed.md: the figures of one run, with what they were measured on. */
import { evaluateGoals, type Results } from './goals.ts';
import { formatAsMarkdown, tabulateGoals, tabulateOpenLoop, tabulatePeers, tabulateScenarios } from './table.ts';

export interface RunConditions {
  readonly date: string;
  readonly machine: readonly string[];
  readonly starts: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly nodeFlags: readonly string[];
  /** What could not be measured, or not as it should. */
  readonly faults: readonly string[];
}

export function writeReport(results: Results, circumstances: RunConditions): string {
  const { played, openLoop } = results;
  const { faults } = circumstances;
  const parts = [
    describe(circumstances),
    ...(faults.length === 0 ? [] : [`Faults of this run:\n\n${markdownList(faults)}`]),
    formatAsMarkdown(tabulateGoals(evaluateGoals(results))),
    '## By scenario\n\n"bare" beside a figure is that of the bare pass-through.',
    formatAsMarkdown(tabulateScenarios(played)),
    "## Beside other proxies\n\nThroughput, of the bare pass-through's.",
    formatAsMarkdown(tabulatePeers(played)),
    '![Throughput of each proxy](speed.svg)',
    ...(openLoop.length === 0
      ? []
      : [
          '## At a constant rate\n\nA call counts from the instant at which it was due.',
          formatAsMarkdown(tabulateOpenLoop(openLoop)),
        ]),
  ];
  return `${parts.join('\n\n')}\n`;
}

function describe({ date, machine, starts, rounds, seconds, nodeFlags }: RunConditions): string {
  const flags = nodeFlags.length === 0 ? 'no flags' : `\`${nodeFlags.join(' ')}\``;
  return `# Speed and memory

Written by \`npm run bench -- --write\` on ${date}. How to read it: [test/bench/speed](../../test/bench/speed/README.md).

${markdownList(machine)}

The sidecar has all on that is on by default (bearer, governor \`auto\`, metrics, access log), with the flags of the image (${flags}). The bare
pass-through is node:http and an undici pool with the bearer put in and nothing else, with the same flags. Each proxy has a core to itself, the client (wrk)
and the upstream (nginx, 500 bytes of JSON) share the other; all are started afresh ${String(starts)} times for each scenario and take turns, ${String(rounds)} rounds of ${String(seconds)} s after each start.
Figures are medians (peak memory the highest), ratios are taken within a round. What was missed comes first.`;
}

function markdownList(lines: readonly string[]): string {
  return lines.map((line) => `- ${line.trim()}`).join('\n');
}
