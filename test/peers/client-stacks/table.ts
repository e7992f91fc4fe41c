/** Writes the results of the client stacks into docs/client-applications.md, between two marks. Pure but for the versions. */
import { spawnSync } from 'node:child_process';
import { EVENTS, KEPT_CALLS, WAYS } from './cells.ts';
import type { BodySizes, Cell, Way } from './cells.ts';
import type { CellResult } from './cell-results.ts';
import type { ClientStack } from './stacks.ts';

export interface ClientResults {
  readonly stack: ClientStack;
  readonly results: Readonly<Record<Way, ReadonlyMap<Cell, CellResult>>>;
}

const [BEGIN, END] = ['<!-- client-table: begin -->', '<!-- client-table: end -->'];

const TITLES: Readonly<Record<Way, string>> = {
  direct: '### With the base URL of the API set to the sidecar',
  proxy: '### With the sidecar as the proxy for `http:` URLs',
};

/** @throws Error when the page has no marks */
export function insertTable(page: string, clients: readonly ClientResults[], sizes: BodySizes): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`the page has no ${BEGIN} … ${END}`);
  return `${page.slice(0, from)}${BEGIN}\n\n${renderTables(clients, sizes)}\n${page.slice(to)}`;
}

function renderTables(clients: readonly ClientResults[], sizes: BodySizes): string {
  const versions = new Map(clients.map(({ stack }) => [stack, readVersion(stack)]));
  const megabytes = (bytes: number): string => `${String(bytes / 1_000_000)} MB`;
  return WAYS.map((way) => {
    const head = [
      ...['client', 'version', ...(way === 'proxy' ? ['set with'] : [])],
      ...['GET', 'POST', `${megabytes(sizes.up)} up`, `${megabytes(sizes.down)} down`],
      ...[`SSE, ${String(EVENTS)} events`, `connections for ${String(KEPT_CALLS)} calls`],
    ];
    const rows = clients.map(({ stack, results }) => [
      stack.name,
      versions.get(stack) ?? '',
      ...(way === 'proxy' ? [stack.proxySetting] : []),
      ...[...results[way]].map(([cell, result]) => renderCell(result, stack.notes?.[cell])),
    ]);
    const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
    return `${TITLES[way]}\n\n${lines.join('\n')}\n`;
  }).join('\n');
}

function renderCell(result: CellResult, note?: string): string {
  const suffix = note === undefined ? '' : `, ${note}`;
  if (result.kind === 'works') return `yes${suffix}`;
  if (result.kind === 'connections') return `${String(result.count)}${result.count > 1 ? suffix : ''}`;
  if (result.kind === 'refused') return 'refused';
  return `${result.kind === 'fails' ? 'no' : 'not run'}: ${result.why.replaceAll('|', '\\|')}`;
}

/** The first number with dots that the program prints. */
function readVersion({ program }: ClientStack): string {
  const [command = '', ...args] = program.version;
  const { stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  return /\d+(?:\.\d+)+/.exec(`${stdout}\n${stderr}`)?.[0] ?? 'unknown';
}
