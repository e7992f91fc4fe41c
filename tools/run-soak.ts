/**
 * The long tests: every `soak:*` script of package.json, one after the other, with the time that each took. Ends with 1 if
 * any of them found its claim violated. `npm run soak -- chaos restarts` runs those two.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

interface Package {
  readonly scripts: Readonly<Record<string, string>>;
}

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Package;
const wanted = process.argv.slice(2);
const names = Object.keys(scripts).filter(
  (name) => name.startsWith('soak:') && (wanted.length === 0 || wanted.includes(name.slice('soak:'.length))),
);
const lines = names.map((name) => {
  console.log(`\n=== ${name}`);
  const startedAt = performance.now();
  const { status } = spawnSync('npm', ['run', '--silent', name], { cwd: ROOT, stdio: 'inherit' });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
  return { passed: status === 0, text: `${name.padEnd(20)} ${status === 0 ? 'ok' : 'FAILED'}, ${seconds} s` };
});
console.log(`\n${lines.map(({ text }) => text).join('\n')}`);
process.exitCode = lines.length > 0 && lines.every(({ passed }) => passed) ? 0 : 1;
