/**
 * SIGHUP, which says one of two things: that the configuration is to be read again, or that the terminal is gone on which the process was
 * started. A terminal that is gone answers as none; on Windows the signal means nothing else (its console was closed).
 */
import { isatty } from 'node:tty';

export interface SighupListener {
  /** Aborted when the terminal has gone: nobody is there any more who could end the process. */
  readonly terminalClosed: AbortSignal;
  /** Who hears of every other SIGHUP; at once if one has come before. */
  onReload(reload: () => void): void;
  /** From now on the process ends with the signal, as without this. */
  restoreDefault(): void;
}

const STANDARD_STREAMS = [0, 1, 2];

/** From now on the signal does not end the process by itself. */
export function listenForSighup(): SighupListener {
  const terminals = STANDARD_STREAMS.filter((descriptor) => isatty(descriptor));
  const gone = new AbortController();
  let hasCome = false;
  let reload = (): void => {
    hasCome = true;
  };
  const hear = (): void => {
    const isOver = process.platform === 'win32' || terminals.some((descriptor) => !isatty(descriptor));
    if (isOver) gone.abort();
    else reload();
  };
  process.on('SIGHUP', hear);
  return {
    terminalClosed: gone.signal,
    onReload(hearer) {
      reload = hearer;
      if (hasCome) hearer();
    },
    restoreDefault: () => void process.off('SIGHUP', hear),
  };
}
