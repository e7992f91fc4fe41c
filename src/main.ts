#!/usr/bin/env node
/**
 * argv, signals, exit codes; nothing else. The Node version is checked before anything is imported: what an older Node
 * would say of the first modern line is no help to anybody.
 */

const MIN_NODE_VERSION = [22, 19] as const;

function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < MIN_NODE_VERSION[0] || (major === MIN_NODE_VERSION[0] && minor < MIN_NODE_VERSION[1]);
}

if (isTooOld(process.versions.node)) {
  process.stderr.write(
    `bearer-sidecar: Node.js ${MIN_NODE_VERSION.join('.')} or newer is needed, this is ${process.versions.node}\n`,
  );
  process.exitCode = 2;
} else {
  const { disableDebugInterfaces } = await import('./platform/hardening.ts');
  const warnings = disableDebugInterfaces();
  const { runCommand } = await import('./commands/command-line.ts');
  const stop = new AbortController();
  let isDone = false;
  const onSignal = (): void => {
    // On its way out with its own exit code: a signal that comes late must not change that.
    if (isDone) return;
    // A second signal means now.
    if (stop.signal.aborted) process.exit(1);
    stop.abort();
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  process.exitCode = await runCommand(process.argv.slice(2), stop.signal, warnings);
  isDone = true;
  // Node.js takes its process apart before it goes, signal handlers first: in that moment a signal would be the end of it.
  process.once('beforeExit', () => process.exit());
  // Whatever still holds the event loop has no business to: the work is done.
  setTimeout(() => process.exit(), 500).unref();
}

export {};
