/**
 * `npm run soak:budgets`: connections, descriptors and memory beyond what the machine gives. Prints what became of the requests, of the probes
 * and of the memory, and ends with 1 when a claim does not hold. Two minutes. `npm run soak:budgets -- NAME` runs the loads whose names begin so.
 */
import { IMAGE_LIMITS, runLoad, type ClientLoad, type MachineLimits } from './budget-loads.ts';

const MIB = 1024 * 1024;
/** Of the Helm chart and the Kubernetes component. */
const CHART_LIMIT_BYTES = 256 * MIB;
const CHART: MachineLimits = { ...IMAGE_LIMITS, memoryBytes: CHART_LIMIT_BYTES };
const SMALL_HEAP: MachineLimits = { flags: ['--max-old-space-size=32', '--max-semi-space-size=4'] };

type Case = readonly [string, MachineLimits, ClientLoad];

const CASES: readonly Case[] = [
  ['admin-heads-64', {}, { kind: 'heads', port: 'admin', count: 64 }],
  ['admin-heads-1000', {}, { kind: 'heads', port: 'admin', count: 1000 }],
  ['admin-idle-1000', {}, { kind: 'idle', port: 'admin', count: 1000 }],
  ['admin-bodies-1000', {}, { kind: 'bodies', port: 'admin', count: 1000 }],
  ['admin-readers-1000', {}, { kind: 'pipeline-get', port: 'admin', count: 1000, size: 200, path: '/metrics' }],
  ['descriptors-256', { descriptors: 256 }, { kind: 'posts', count: 300, size: 100 }],
  ['descriptors-48', { descriptors: 48 }, { kind: 'posts', count: 300, size: 100 }],
  ['descriptors-256-heads', { descriptors: 256 }, { kind: 'heads', count: 300 }],
  ['small-heap', SMALL_HEAP, { kind: 'posts', count: 6000, size: 100 }],
  ['small-heap-64k', SMALL_HEAP, { kind: 'posts', count: 6000, size: 65536 }],
  [
    'small-heap-queue',
    { ...SMALL_HEAP, env: { SIDECAR_QUEUE_MAX: '10000', SIDECAR_MAX_IN_FLIGHT: '4' } },
    { kind: 'posts', count: 6000, size: 2000 },
  ],
  ['chart-posts', CHART, { kind: 'posts', count: 9000, size: 65536 }],
  ['chart-heads', CHART, { kind: 'heads', count: 9000 }],
  ['chart-pipelined-gets', CHART, { kind: 'pipeline-get', count: 30, size: 1000 }],
  ['chart-pipelined-posts', CHART, { kind: 'pipeline-post', count: 100, size: 300 }],
  ...[1, 6, 100].flatMap((count) =>
    [20_000, 1].flatMap((upstreamMs) =>
      (['flood', 'flood-read'] as const).map((kind): Case => [
        `chart-${kind}-${String(count)}-upstream-${String(upstreamMs)}`,
        CHART,
        { kind, count, size: 65_536, upstreamMs },
      ]),
    ),
  ),
  ['chart-packets', CHART, { kind: 'pipeline-get', count: 100, size: 1800, upstreamMs: 20_000 }],
  ['chart-fields-1', CHART, { kind: 'fields', count: 1300, size: 1, upstreamMs: 20_000 }],
  ['chart-fields-200', CHART, { kind: 'fields', count: 1300, size: 199, upstreamMs: 20_000 }],
  ['chart-fields-2000', CHART, { kind: 'fields', count: 1300, size: 2000, upstreamMs: 20_000 }],
  ['chart-partial-fields-200', CHART, { kind: 'fields-partial', count: 1300, size: 199 }],
  ['chart-partial-fields-2000', CHART, { kind: 'fields-partial', count: 1300, size: 2000 }],
];

const [, , wanted = ''] = process.argv;
for (const [name, machine, load] of CASES) {
  if (!name.startsWith(wanted)) continue;
  const { isAlive, peakBytes, clients, pingResponses, pingMs, log } = await runLoad(name, machine, load);
  const lines = log.split('\n');
  const exhausted = lines.filter((line) => /EMFILE|ENFILE/.test(line)).length;
  const { '200': served = 0, '503 QUEUE_FULL': refused = 0, open = 0, ...others } = clients;
  const seen =
    load.kind === 'posts'
      ? `served ${served}, refused ${refused}, others ${JSON.stringify(others)}`
      : `${open} connections`;
  const pings = `livez ${pingResponses} of 50 (p50 ${pingMs.p50.toFixed(0)} ms, longest ${pingMs.max.toFixed(0)} ms)`;
  console.log(`${name}: ${seen}; ${pings}, peak ${(peakBytes / MIB).toFixed(0)} MiB`);
  for (const warning of lines.filter((line) => /"level":"warn".*"msg":"the (limit|heap|memory limit) of/.test(line)))
    console.log(`  ${warning}`);
  claim('the process is alive', isAlive);
  claim('no descriptor ran out', exhausted === 0);
  claim('at least 45 of 50 probes get a response', pingResponses >= 45);
  if (machine === CHART) claim("the peak is below the chart's limit", peakBytes < CHART_LIMIT_BYTES);
  // Of those that are still sending when they are refused, some see a reset.
  if (machine.flags === SMALL_HEAP.flags && (load.size ?? 0) <= 2000)
    claim('99 of 100 clients have a response', served + refused >= 0.99 * load.count);
}

function claim(what: string, holds: boolean): void {
  console.log(`  ${holds ? 'ok      ' : 'VIOLATED'} ${what}`);
  if (!holds) process.exitCode = 1;
}
