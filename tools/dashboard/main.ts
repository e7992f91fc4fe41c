/**
 * Writes what is made and not written: deploy/grafana/dashboard.json from rows.ts, in docs/operations.md the tables of metrics, from the
 * catalogue, and of alerts, from the rules, and these rules as Kubernetes takes them. `npm run dashboard` writes them; with `--check` it writes nothing and exits 1 when one is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GENERATED_FILES, ROOT } from './made-files.ts';

const check = process.argv.includes('--check');
let stale = 0;
for (const [name, render] of GENERATED_FILES) {
  const text = await render();
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
