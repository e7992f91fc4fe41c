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

const WAY_NAMES: Readonly<Record<Way, string>> = { direct: 'base URL', proxy: 'proxy' };

const CELL_NAMES: Readonly<Record<Cell, string>> = {
  ...{ get: 'GET', post: 'POST', up: 'upload', down: 'download' },
  ...{ sse: 'event stream', 'keep-alive': 'connections' },
};

/** @throws Error when the page has no marks */
export function insertTable(page: string, clients: readonly ClientResults[], sizes: BodySizes): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`the page has no ${BEGIN} … ${END}`);
  return `${page.slice(0, from)}${BEGIN}\n\n${renderTable(clients, sizes)}\n\n${page.slice(to)}`;
}

function renderTable(clients: readonly ClientResults[], sizes: BodySizes): string {
  const versions = new Map(clients.map(({ stack }) => [stack, readVersion(stack)]));
  const megabytes = (bytes: number): string => `${String(bytes / 1_000_000)} MB`;
  const text =
    `Each client made these calls with the base URL of the sidecar, and again with the sidecar as proxy for \`http:\` URLs: GET, POST, ` +
    `${megabytes(sizes.up)} up, ${megabytes(sizes.down)} down, an event stream of ${String(EVENTS)} events, ` +
    `${String(KEPT_CALLS)} calls over one connection. All work, with these exceptions:`;
  const named = ({ stack }: ClientResults): string => `${stack.name} (${versions.get(stack) ?? ''})`;
  const groups = Map.groupBy(clients, (client) => `${client.stack.proxySetting} | ${describeExceptions(client)}`);
  const rows = [...groups].map(([columns, alike]) => `| ${alike.map(named).join('; ')} | ${columns} |`);
  return [`${text}\n`, '| client | as proxy set by | exceptions |', '| --- | --- | --- |', ...rows].join('\n');
}

/** What is alike in both ways is stated once. */
function describeExceptions({ stack, results }: ClientResults): string {
  const [direct, proxy] = WAYS.map((way) => describeWay(results[way], stack.notes ?? {})) as [string, string];
  if (direct === proxy) return direct;
  return WAYS.map((way) => ({ way, text: way === 'direct' ? direct : proxy }))
    .filter(({ text }) => text !== '')
    .map(({ way, text }) => `${WAY_NAMES[way]}: ${text}`)
    .join('; ');
}

function describeWay(results: ReadonlyMap<Cell, CellResult>, notes: NonNullable<ClientStack['notes']>): string {
  if ([...results.values()].every(({ kind }) => kind === 'refused')) return 'refused';
  return [...results]
    .map(([cell, result]) => describeCell(cell, result, notes[cell]))
    .filter((text) => text !== undefined)
    .join('; ');
}

/** Undefined if it works and needs no remark. */
function describeCell(cell: Cell, result: CellResult, note?: string): string | undefined {
  const name = CELL_NAMES[cell];
  const suffix = note === undefined ? '' : `, ${note}`;
  if (result.kind === 'works') return note === undefined ? undefined : `${name} ${note}`;
  if (result.kind === 'connections') return result.count > 1 ? `${String(result.count)} ${name}${suffix}` : undefined;
  if (result.kind === 'refused') return `${name} refused`;
  return `${name} ${result.kind === 'fails' ? 'fails' : 'not run'}: ${result.why.replaceAll('|', '\\|')}`;
}

/** The first number with dots that the program prints. */
function readVersion({ program }: ClientStack): string {
  const [command = '', ...args] = program.version;
  const { stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  return /\d+(?:\.\d+)+/.exec(`${stdout}\n${stderr}`)?.[0] ?? 'unknown';
}
