/**
 * Generates deploy/grafana/dashboard.json from rows.ts, the tables of metrics and alerts in docs/operations.md, and the Prometheus rules
 * for Kubernetes and Helm. With `--check` it writes nothing and exits 1 when a file is stale.
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
