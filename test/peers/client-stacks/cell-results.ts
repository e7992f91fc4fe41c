/**
 * Runs the cells of one client in one way and compares both sides: what the client sent with what the API received, and what the API sent with
 * what the client received. A status alone proves nothing.
 */
import { createHash } from 'node:crypto';
import { startStatusTap } from '../../support/status-tap.ts';
import { CELLS, EVENTS, KEPT_CALLS } from './cells.ts';
import type { Cell, Way } from './cells.ts';
import { runClient } from './client-program.ts';
import type { ClientReport } from './client-program.ts';
import { BASE_PATH, PARTNER_HOST } from './site.ts';
import type { Site } from './site.ts';
import type { BuiltClients, ClientStack } from './stacks.ts';

export type CellResult =
  | { readonly kind: 'works' }
  /** Of the cell `keep-alive`. */
  | { readonly kind: 'connections'; readonly count: number }
  /** As it must be: an error for the client, and nothing for the API. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'fails'; readonly why: string }
  | { readonly kind: 'not run'; readonly why: string };

export interface CellsOptions {
  readonly site: Site;
  readonly built: BuiltClients;
  /** For each of the two runs of a client. Default 60 000. */
  readonly timeoutMs?: number;
}

/** Two runs of the program: the connections of `keep-alive` are counted apart from the others. */
export async function runCells(
  stack: ClientStack,
  way: Way,
  options: CellsOptions,
): Promise<ReadonlyMap<Cell, CellResult>> {
  const { site, built, timeoutMs } = options;
  const run = `${stack.name}-${way}`.replaceAll(/[^A-Za-z0-9]+/g, '-');
  const call = (sidecarUrl: string, cells: readonly Cell[]): Promise<Map<string, ClientReport>> =>
    runClient({
      ...{ stack, built, cells, timeoutMs },
      folder: site.folder,
      baseUrl: way === 'direct' ? `${sidecarUrl}/${run}` : `http://${PARTNER_HOST}${BASE_PATH}/${run}`,
      ...(way === 'direct' ? {} : { proxyUrl: sidecarUrl }),
      onEvent: (event) => {
        events.push(event);
        site.confirmEvent(run, event);
      },
    });
  const events: string[] = [];
  const { notRun = {} } = stack;
  const runnable = CELLS.filter((cell) => notRun[cell] === undefined);
  const sidecarUrl = site.sidecars[way].proxyUrl;
  const reports = await call(
    sidecarUrl,
    runnable.filter((cell) => cell !== 'keep-alive'),
  );
  await using tap = await startStatusTap(sidecarUrl);
  const kept = await call(tap.url, ['keep-alive']);

  const resultOf = (cell: Cell): CellResult => {
    const reason = notRun[cell];
    if (reason !== undefined) return { kind: 'not run', why: reason };
    const report = (cell === 'keep-alive' ? kept : reports).get(cell) ?? { cell };
    if (stack.refused?.includes(way)) return refusedOr(report, site, run);
    const fault = findFault(report, site, run, events);
    if (fault !== undefined) return { kind: 'fails', why: fault };
    return cell === 'keep-alive' ? countConnections(tap.connections(), stack.maxConnections?.[way]) : { kind: 'works' };
  };
  return new Map(CELLS.map((cell) => [cell, resultOf(cell)]));
}

function countConnections(count: number, most = 1): CellResult {
  if (count <= most) return { kind: 'connections', count };
  return { kind: 'fails', why: `${String(count)} connections for ${String(KEPT_CALLS)} calls` };
}

function refusedOr({ cell, error }: ClientReport, site: Site, run: string): CellResult {
  const reached = site.requestsOf(run, cell).length;
  if (error !== undefined && reached === 0) return { kind: 'refused' };
  return { kind: 'fails', why: `this must be refused; requests that reached the API: ${String(reached)}` };
}

function findFault(report: ClientReport, site: Site, run: string, events: readonly string[]): string | undefined {
  const { cell } = report;
  const received = site.requestsOf(run, cell);
  const expectedCalls = cell === 'keep-alive' ? KEPT_CALLS : 1;
  if (report.error !== undefined)
    return `${report.error.replaceAll(/\s+/g, ' ').trim()} (requests that reached the API: ${String(received.length)})`;
  if (received.length !== expectedCalls)
    return `${String(received.length)} requests reached the API, not ${String(expectedCalls)}`;
  if (received.some(({ headers }) => !site.isIssued(headers.authorization?.replace(/^Bearer /, '') ?? '')))
    return 'a request reached the API without the access token';
  if (received.some(({ headers }) => headers.upgrade !== undefined)) return 'Upgrade reached the API';
  if (cell === 'sse')
    return events.length === EVENTS ? undefined : `${String(events.length)} events of ${String(EVENTS)}`;
  return findRequestFault(report, site, run) ?? findResponseFault(report, site, run);
}

function findRequestFault({ cell, sentSha256 }: ClientReport, site: Site, run: string): string | undefined {
  const received = site.requestsOf(run, cell);
  const expected = sentSha256 ?? sha256(cell === 'post' || cell === 'up' ? site.contents[cell] : Buffer.of());
  const isSame =
    cell === 'keep-alive'
      ? sha256(Buffer.concat(received.map(({ body }) => body))) === expected
      : received[0]?.bodySha256 === expected;
  if (isSame) return undefined;
  return `the API received another body: ${String(received[0]?.bodyBytes)} bytes`;
}

function findResponseFault(report: ClientReport, site: Site, run: string): string | undefined {
  const sent = site.sentFor(run, report.cell);
  if (report.operations !== undefined)
    return report.operations.some((text) => text.includes('quote(')) ? undefined : 'the WSDL was not read whole';
  if (report.sha256 === sent.sha256 && report.bytes === sent.bytes) return undefined;
  return `the client received another body: ${String(report.bytes)} bytes of ${String(sent.bytes)}`;
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
