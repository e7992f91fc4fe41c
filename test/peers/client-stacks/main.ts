/**
 * Runs every cell of the table in docs/client-applications.md with real client programs and writes the table. Bodies: 50 MB up, 100 MB down.
 * Exits 1 when a cell fails. Run: npm run client-table
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installMissingPrograms } from '../../../tools/test-run/test-programs.ts';
import { runCells } from './cell-results.ts';
import { startSite } from './site.ts';
import { CLIENT_STACKS, buildClients } from './stacks.ts';
import { insertTable } from './table.ts';
import type { ClientResults } from './table.ts';
import { formatText } from '../../../tools/format-text.ts';

const PAGE = join(import.meta.dirname, '..', '..', '..', 'docs', 'client-applications.md');
const SIZES = { up: 50_000_000, down: 100_000_000 };

for (const line of installMissingPrograms()) console.error(`!!! ${line}`);

await using cleanup = new AsyncDisposableStack();
const site = cleanup.use(await startSite('client-table', SIZES));
const options = { site, built: cleanup.use(buildClients()) };

const clients: ClientResults[] = [];
for (const stack of CLIENT_STACKS) {
  const results = {
    direct: await runCells(stack, 'direct', options),
    proxy: await runCells(stack, 'proxy', options),
  };
  clients.push({ stack, results });
  for (const [way, cells] of Object.entries(results)) {
    const faults = [...cells].flatMap(([cell, result]) => (result.kind === 'fails' ? [`${cell}: ${result.why}`] : []));
    console.log(`${stack.name}, ${way}: ${faults.length === 0 ? 'ok' : faults.join('; ')}`);
    if (faults.length > 0) process.exitCode = 1;
  }
}

const page = insertTable(readFileSync(PAGE, 'utf8'), clients, SIZES);
writeFileSync(PAGE, await formatText(page, PAGE));
