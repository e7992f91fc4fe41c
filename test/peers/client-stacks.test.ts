/**
 * Real client programs against the sidecar in a process of its own: each cell of the table in docs/client-applications.md, with long bodies of 1.5 MB
 * (`npm run client-table` runs it with longer ones). Both sides are compared, and the whole is printed as a table.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCells } from './client-stacks/cell-results.ts';
import type { CellResult, CellsOptions } from './client-stacks/cell-results.ts';
import { WAYS } from './client-stacks/cells.ts';
import { startSite } from './client-stacks/site.ts';
import type { Site } from './client-stacks/site.ts';
import { CLIENT_STACKS, buildClients } from './client-stacks/stacks.ts';

/** More than the replay buffer, so that they are streamed. */
const BODY_BYTES = 1_500_000;
/** Of each of the two runs of a client: both end within the time of a test. */
const CLIENT_TIMEOUT_MS = 120_000;

const running = new AsyncDisposableStack();
let site: Site;
let options: CellsOptions;
const rows: Record<string, string>[] = [];

beforeAll(async () => {
  site = running.use(await startSite('client-stacks', { up: BODY_BYTES, down: BODY_BYTES }));
  options = { site, built: running.use(buildClients()), timeoutMs: CLIENT_TIMEOUT_MS };
});

afterAll(async () => {
  console.table(rows.toSorted((a, b) => `${a.way} ${a.client}`.localeCompare(`${b.way} ${b.client}`)));
  await running.disposeAsync();
});

describe.concurrent.each(WAYS)('with the sidecar as %s', (way) => {
  test.each(CLIENT_STACKS.map((stack) => [stack.name, stack] as const))('%s', async (name, stack) => {
    const results = await runCells(stack, way, options);
    rows.push({
      client: name,
      way,
      ...Object.fromEntries([...results].map(([cell, result]) => [cell, textOf(result)])),
    });
    expect([...results].filter(([, { kind }]) => kind === 'fails')).toEqual([]);
  });
});

function textOf(result: CellResult): string {
  if (result.kind === 'connections') return String(result.count);
  return result.kind === 'works' ? 'yes' : result.kind;
}
