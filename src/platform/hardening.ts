/**
 * Shuts the doors that Node.js itself opens into a process full of secrets: the debugger on a signal, the environment in
 * diagnostic reports, debug output of libraries, TLS without verification. What an operator asks for on Node's command line stays the operator's.
 */
import { isSea } from 'node:sea';

/**
 * Called once, before anything else is imported. May replace this process by one with a smaller environment.
 * @returns what was found in the environment and is ignored, in words for people
 */
export function disableDebugInterfaces(): string[] {
  // By default whoever may send this signal gets a debugger, and with it every variable.
  process.on('SIGUSR1', () => undefined);
  // The environment may hold the client's secret.
  process.report.excludeEnv = true;
  disableDebugOutput();
  return enforceTlsVerification();
}

/** Node.js looks at the variable with every connection. Each part asks for verification by itself as well; libraries do not. */
function enforceTlsVerification(): string[] {
  const { NODE_TLS_REJECT_UNAUTHORIZED: value } = process.env;
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  if (value !== '0') return [];
  return [
    'NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored: certificates are always verified; ' +
      'SIDECAR_CA_FILE (upstream.caFile) and SIDECAR_AUTH_CA_FILE (auth.caFile) name the authorities to trust',
  ];
}

/** NODE_DEBUG=stream prints buffers and NODE_DEBUG=net options; either has shown tokens. DEBUG is a library's own. */
function disableDebugOutput(): void {
  const { DEBUG, NODE_DEBUG, ...environment } = process.env;
  if (DEBUG !== undefined) delete process.env.DEBUG;
  if (NODE_DEBUG === undefined || NODE_DEBUG === '') return;
  const canRestart = process.execve !== undefined;
  const verdict = canRestart ? 'is ignored' : 'cannot be ignored on this platform';
  process.stderr.write(`bearer-sidecar: warning: NODE_DEBUG ${verdict}: what it prints may hold tokens\n`);
  // Node.js read it before the first line of this program: only a new beginning does without.
  // In a one-file binary the second argument is its own path once more, which Node.js puts there again.
  const args = isSea() ? process.argv.slice(2) : [...process.execArgv, ...process.argv.slice(1)];
  process.execve?.(process.execPath, [process.argv0, ...args], environment);
}
