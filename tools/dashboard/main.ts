/**
 * Writes what is made and not written: deploy/grafana/dashboard.json from rows.ts, and in docs/operations.md the tables of metrics,
 * from the catalogue, and of alerts, from the rules. `npm run dashboard` writes them; with `--check` it writes nothing and exits 1 when one is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderDashboardFile, renderOperations, ROOT } from './made-files.ts';

const check = process.argv.includes('--check');
const made = [
  ['deploy/grafana/dashboard.json', await renderDashboardFile()],
  ['docs/operations.md', await renderOperations()],
] as const;

let stale = 0;
for (const [name, text] of made) {
  const file = join(ROOT, name);
  if (!check) {
    writeFileSync(file, text);
    console.log(`written: ${name}`);
  } else if (readFileSync(file, 'utf8') !== text) {
    stale++;
    console.error(`${name} is stale: run npm run dashboard`);
  }
}
process.exitCode = stale === 0 ? 0 : 1;
