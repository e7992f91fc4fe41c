/**
 * `npm run bench:unknown-calls [-- KILLS SEED]`: sidecars that are killed under load, and what the file of unknown calls costs a POST. Exits
 * with 1 when a call that reached the upstream is neither responded nor in the file.
 */
import { runKills } from '../../chaos/killed-sidecars.ts';
import { compareSpeed } from './speed.ts';

const [kills = 200, seed = 1] = process.argv.slice(2).map(Number);
console.table(await compareSpeed());
const startedAt = performance.now();
const { missing, ...report } = await runKills(kills, seed);
const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
console.log(
  `${String(kills)} kills under 100 POST/s with seed ${String(seed)}, ${seconds} s: ${JSON.stringify(report)}`,
);
console.log(`reached the upstream, neither responded nor in the file: ${String(missing.length)} ${missing.join(' ')}`);
process.exitCode = missing.length === 0 ? 0 : 1;
