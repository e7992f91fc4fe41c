/** Uses a sandbox as a person does: starts it on free ports, sends the request that it prints, and ends it with SIGTERM. */
import { execFile, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * @param command with its arguments
 * @returns the status and the body of the response
 * @throws Error for another response than the sandbox's, or another exit code than 0
 */
export async function trySandbox(
  [program, ...args]: readonly [string, ...string[]],
  options: SpawnOptions,
): Promise<string> {
  const env = { ...options.env, SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' };
  const sandbox = spawn(program, args, { ...options, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(sandbox, 'exit') as Promise<[number | null, string | null]>;
  let log = '';
  sandbox.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  let response: string;
  try {
    const curl = await readCurlLine(sandbox.stdout);
    const { stdout } = await run('sh', ['-c', `${curl} --silent --max-time 120 --write-out '\\n%{http_code}'`]);
    const [status = '', body = ''] = stdout.trim().split('\n').toReversed();
    response = `${status} ${body}`;
  } catch (error) {
    throw new Error(`no response: ${log}`, { cause: error });
  } finally {
    sandbox.kill('SIGTERM');
  }
  if (!/^2\d\d .*"simulated":true/.test(response)) throw new Error(`not the sandbox's response: ${response}`);
  const [code, signal] = await ended;
  if (code !== 0) throw new Error(`SIGTERM ended it with ${String(code ?? signal)}, not 0: ${log}`);
  return response;
}

async function readCurlLine(stdout: NodeJS.ReadableStream): Promise<string> {
  const impatient = AbortSignal.timeout(120_000);
  for await (const line of createInterface({ input: stdout, signal: impatient }))
    if (line.startsWith('try ')) return line.slice('try '.length);
  throw new Error('the sandbox printed no line to try');
}
