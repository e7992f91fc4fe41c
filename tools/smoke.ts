/**
 * Tries what was built, as a user would: `dist/main.js sandbox` on free ports, the curl line that it prints, SIGTERM.
 * And, where the machine has a Node that is too old, that it says so in one line.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const MAIN = 'dist/main.js';
const run = promisify(execFile);

async function trySandbox(): Promise<void> {
  const env = { PATH: process.env.PATH ?? '', SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' };
  const sandbox = spawn(process.execPath, [MAIN, 'sandbox'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(sandbox, 'exit') as Promise<[number | null, string | null]>;
  try {
    const curl = await readCurlLine(sandbox.stdout);
    const { stdout } = await run('sh', ['-c', `${curl} --silent --max-time 10 --write-out '\\n%{http_code}'`]);
    const [status = '', ...rest] = stdout.trim().split('\n').toReversed();
    if (!/^2\d\d$/.test(status)) throw new Error(`the pasted line returned ${status}: ${rest.join(' ')}`);
    const body = JSON.parse(rest[0] ?? '') as { simulated?: unknown };
    if (body.simulated !== true) throw new Error(`not the sandbox's response: ${rest[0] ?? ''}`);
    console.log(`smoke: ${curl}\nsmoke: responded with ${status} ${rest[0] ?? ''}`);
  } finally {
    sandbox.kill('SIGTERM');
  }
  const [code, signal] = await ended;
  if (code !== 0) throw new Error(`SIGTERM ended it with ${String(code ?? signal)}, not 0`);
  console.log('smoke: SIGTERM, exit 0');
}

async function readCurlLine(stdout: NodeJS.ReadableStream): Promise<string> {
  const impatient = AbortSignal.timeout(15_000);
  for await (const line of createInterface({ input: stdout, signal: impatient }))
    if (line.startsWith('try ')) return line.slice('try '.length);
  throw new Error('the sandbox printed no line to try');
}

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

await trySandbox();
await tryOldNode();
