/**
 * `npm start`: runs the command in its arguments as src/main.ts does for users, and ends when npm ends, which a sidecar must not.
 *
 * package.json starts it with `exec`, so that npm's signals reach it: a shell between them would keep a SIGINT to itself. cmd.exe has
 * no such builtin and finds exec.cmd.
 */
const npmPid = process.ppid;

const CHECK_INTERVAL_MS = 200;
/** Ctrl-C arrives twice: from the terminal and from npm. */
const REPEATED_SIGNAL_MS = 500;
/** The sandbox only simulates: two seconds after a signal it is gone, and its ports are free. */
const DRAIN_MS = '1000';

const { disableDebugInterfaces } = await import('../src/platform/hardening.ts');
const warnings = disableDebugInterfaces();
const { runCommand } = await import('../src/commands/command-line.ts');
const stop = new AbortController();
let stoppedAt = Infinity;

function onSignal(): void {
  if (performance.now() - stoppedAt > REPEATED_SIGNAL_MS) process.exit(1);
  if (stop.signal.aborted) return;
  stoppedAt = performance.now();
  stop.abort();
}

process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
// A process whose parent has ended is given another parent; on Windows it is not.
setInterval(() => {
  if (process.ppid !== npmPid && !stop.signal.aborted) onSignal();
}, CHECK_INTERVAL_MS).unref();

const { SIDECAR_DRAIN_MS: drain = '', SIDECAR_DRAIN_DELAY_MS: delay = '' } = process.env;
if (drain === '' && delay === '') process.env.SIDECAR_DRAIN_MS = DRAIN_MS;
process.exitCode = await runCommand(process.argv.slice(2), stop.signal, warnings);
process.exit();

export {};
