/**
 * Disables ways in which Node.js exposes the secrets of a process: the debugger on a signal, the environment in diagnostic reports,
 * debug output of libraries, TLS without verification. Options on Node's command line are left to the operator.
 */
import { isSea } from 'node:sea';

/**
 * To be called once, before other modules are imported. May replace this process by one without the debug variables.
 * @returns warnings about variables that are ignored
 */
export function disableDebugInterfaces(): string[] {
  // By default this signal starts a debugger, which can read every variable.
  process.on('SIGUSR1', () => undefined);
  // The environment may hold the client's secret.
  process.report.excludeEnv = true;
  disableDebugOutput();
  return enforceTlsVerification();
}

/** Node.js reads the variable for every connection. Our own code requires verification explicitly; libraries do not. */
function enforceTlsVerification(): string[] {
  const { NODE_TLS_REJECT_UNAUTHORIZED: value } = process.env;
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  if (value !== '0') return [];
  return [
    'NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored: certificates are always verified; ' +
      'SIDECAR_CA_FILE (upstream.caFile) and SIDECAR_AUTH_CA_FILE (auth.caFile) name the authorities to trust',
  ];
}

/** NODE_DEBUG=stream prints buffers and NODE_DEBUG=net options, both with tokens. DEBUG is read by libraries. */
function disableDebugOutput(): void {
  const { DEBUG, NODE_DEBUG, ...environment } = process.env;
  if (DEBUG !== undefined) delete process.env.DEBUG;
  if (NODE_DEBUG === undefined || NODE_DEBUG === '') return;
  const canRestart = process.execve !== undefined;
  const effect = canRestart ? 'is ignored' : 'cannot be ignored on this platform';
  process.stderr.write(`bearer-sidecar: warning: NODE_DEBUG ${effect}: what it prints may hold tokens\n`);
  // Node.js reads the variable before this program starts, so the process has to start again.
  // In a one-file binary Node.js inserts the program's path as second argument, and does so again.
  const args = isSea() ? process.argv.slice(2) : [...process.execArgv, ...process.argv.slice(1)];
  process.execve?.(process.execPath, [process.argv0, ...args], environment);
}
