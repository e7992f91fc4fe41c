/**
 * Has client programs read responses that break off, and writes the table in docs/client-applications.md. Exits 1 when a program takes a
 * short body for whole that it does not take so from the API itself. `TESTED_MAIN` names another sidecar. Run: npm run broken-table
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatText } from '../../../tools/format-text.ts';
import { installMissingPrograms } from '../../../tools/test-run/test-programs.ts';
import { MAIN } from '../../support/main-file.ts';
import { BROKEN_CLIENTS, createBuildFolder } from './clients.ts';
import { readAll, startBrokenSite, type Seen } from './results.ts';
import { FRAMINGS, PLACES } from './upstream.ts';

const PAGE = join(import.meta.dirname, '..', '..', '..', 'docs', 'client-applications.md');
const [BEGIN, END] = ['<!-- broken-table: begin -->', '<!-- broken-table: end -->'];

for (const line of installMissingPrograms()) console.error(`!!! ${line}`);

await using cleanup = new AsyncDisposableStack();
const site = cleanup.use(await startBrokenSite('broken-table'));
const { folder } = cleanup.use(createBuildFolder());
/** The programs with the same cells, by how they called and these cells. */
const rows = new Map<string, string[]>();

for (const client of BROKEN_CLIENTS) {
  if (client.needs !== undefined && !existsSync(client.needs)) {
    console.log(`${client.name}: not run, ${client.needs} is missing`);
    continue;
  }
  const direct = await readAll(client, folder, site.directUrl);
  const through = await readAll(client, folder, site.sidecarUrl);
  const isWorse = through.some(({ isDetected }, at) => !isDetected && direct[at]?.isDetected === true);
  if (isWorse) process.exitCode = 1;
  const [cells, directCells] = [describe(through), describe(direct)];
  console.log(`${client.name}\n  direct  ${directCells}\n  sidecar ${cells}`);
  const ways =
    cells === directCells ? [`both ways | ${cells}`] : [`directly | ${directCells}`, `by the sidecar | ${cells}`];
  for (const way of ways) rows.set(way, [...(rows.get(way) ?? []), client.name]);
}

if (MAIN === 'src/main.ts') {
  const page = readFileSync(PAGE, 'utf8');
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`the page has no ${BEGIN} … ${END}`);
  const head = ['| client | called | `Content-Length` | chunked | until close |', '| --- | --- | --- | --- | --- |'];
  const table = [...head, ...[...rows].map(([way, names]) => `| ${names.join(', ')} | ${way} |`)].join('\n');
  const text = `${page.slice(0, from)}${BEGIN}\n\n${table}\n\n${page.slice(to)}`;
  writeFileSync(PAGE, await formatText(text, PAGE));
}

/** A cell for each framing: bytes that the program got at each place, with a word where it takes them for the whole body. */
function describe(seen: readonly Seen[]): string {
  return FRAMINGS.map((framing) =>
    PLACES.map((place) => {
      const cell = seen.find((each) => each.framing === framing && each.place === place);
      if (cell === undefined) throw new Error(`nothing read of ${framing}, ${place}`);
      return cell.isDetected ? String(cell.bytes) : `**${String(cell.bytes)} whole**`;
    }).join(', '),
  ).join(' | ');
}
