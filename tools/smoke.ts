/**
 * Tries what was built, as a user would: `dist/main.js sandbox` on free ports, the curl line that it prints, SIGTERM.
 * And, where the machine has a Node that is too old, that it says so in one line.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { trySandbox } from './release/try-sandbox.ts';

const MAIN = 'dist/main.js';
const run = promisify(execFile);

/** Says nothing has been shown where the machine has no old Node. */
async function tryOldNode(): Promise<void> {
  for (const node of ['/usr/bin/node', '/usr/local/bin/node']) {
    const version = await run(node, ['-p', 'process.versions.node']).then(
      ({ stdout }) => stdout.trim(),
      () => undefined,
    );
    if (version === undefined || Number(version.split('.')[0]) >= 22) continue;
    const { code, stdout, stderr } = await runToEnd(node, [MAIN, 'sandbox']);
    const lines = (stdout + stderr).trim().split('\n');
    if (code !== 2 || lines.length !== 1)
      throw new Error(`on Node ${version}: exit ${String(code)}, ${String(lines.length)} lines:\n${lines.join('\n')}`);
    console.log(`smoke: Node ${version}: exit 2, "${lines[0] ?? ''}"`);
    return;
  }
  console.log('smoke: no old Node on this machine; the version check was not tried');
}

async function runToEnd(
  command: string,
  args: string[],
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: 10_000 });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

const response = await trySandbox([process.execPath, MAIN, 'sandbox'], { env: { PATH: process.env.PATH } });
console.log(`smoke: responded with ${response}; SIGTERM, exit 0`);
await tryOldNode();
