/**
 * SIGHUP has two meanings: reload the configuration, or the terminal of the process was closed. A closed terminal is no longer a
 * TTY. On Windows the signal always means that the console was closed.
 */
import { isatty } from 'node:tty';

const STANDARD_STREAMS = [0, 1, 2];

/** From now on the signal does not end the process. */
export function listenForSighup() {
  const terminals = STANDARD_STREAMS.filter((descriptor) => isatty(descriptor));
  const closed = new AbortController();
  let isPending = false;
  let reload = (): void => {
    isPending = true;
  };
  const onSighup = (): void => {
    const isClosed = process.platform === 'win32' || terminals.some((descriptor) => !isatty(descriptor));
    if (isClosed) closed.abort();
    else reload();
  };
  process.on('SIGHUP', onSighup);
  return {
    terminalClosed: closed.signal,
    /** Runs `run` for every other SIGHUP, and at once if one has already arrived. */
    onReload(run: () => void): void {
      reload = run;
      if (isPending) run();
    },
    /** From then on the signal ends the process. */
    restoreDefault: () => void process.off('SIGHUP', onSighup),
  };
}
