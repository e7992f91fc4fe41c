/** Runs vitest with a report for people and one for machines, and keeps a copy of everything it printed. */
import { spawn } from 'node:child_process';
import { createWriteStream, rmSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';

interface VitestRun {
  /** The Node.js program. */
  readonly node: string;
  readonly root: string;
  /** Where the JSON report goes. */
  readonly report: string;
  /** Where the copy of stdout and stderr goes. */
  readonly log: string;
  readonly args: readonly string[];
}

/** Resolves with vitest's exit code; a death by signal counts as 1. */
export async function runVitest(run: VitestRun): Promise<number> {
  const copy = createWriteStream(run.log);
  const reports = ['--reporter=default', '--reporter=json', `--outputFile.json=${run.report}`];
  const compiled = join(run.root, 'node_modules', '.cache', 'compiled');
  // Programs in temporary folders leave entries in it.
  rmSync(compiled, { recursive: true, force: true });
  const child = spawn(run.node, ['node_modules/vitest/vitest.mjs', 'run', ...reports, ...run.args], {
    cwd: run.root,
    // Hundreds of processes load the same modules: compiling them each time would be a tenth of the run.
    env: { ...process.env, NODE_COMPILE_CACHE: compiled },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const [from, to] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ] as const) {
    from.pipe(to, { end: false });
    from.pipe(copy, { end: false });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  copy.end();
  await once(copy, 'finish');
  return code ?? 1;
}
