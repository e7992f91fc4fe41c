#!/usr/bin/env node
/**
 * The entry point: Node version, argv, signals, exit codes. The version is checked before any import, because an older Node.js would
 * fail on the first modern line with a syntax error.
 */

/** From 22.21 and from 24.9 on, an upgrade can be ignored (`shouldUpgradeCallback`); 23 has no such release. */
function isSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 9) || (major === 22 && minor >= 21);
}

if (!isSupported(process.versions.node)) {
  process.stderr.write(
    `bearer-sidecar: Node.js 22.21 (or a newer 22), or 24.9 or newer, is needed; this is ${process.versions.node}\n`,
  );
  process.exitCode = 2;
} else {
  const stop = new AbortController();
  let isDone = false;
  const onSignal = (): void => {
    // The exit code is set already.
    if (isDone) return;
    // A second signal stops at once.
    if (stop.signal.aborted) process.exit(1);
    stop.abort();
  };
  // Before any import: the kernel drops a signal to process 1 of a container that has no handler.
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  const { disableDebugInterfaces } = await import('./platform/hardening.ts');
  const warnings = disableDebugInterfaces();
  const { runCommand } = await import('./commands/command-line.ts');
  process.exitCode = await runCommand(process.argv.slice(2), stop.signal, warnings);
  isDone = true;
  // While Node.js shuts down, it removes signal handlers first: a signal would then end the process with another code.
  process.once('beforeExit', () => process.exit());
  // The command has finished: nothing may keep the event loop running for longer.
  setTimeout(() => process.exit(), 500).unref();
}

export {};
