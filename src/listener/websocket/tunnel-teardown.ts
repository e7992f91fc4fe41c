/** Closes both sides of an upgraded connection soon after one of them has ended, even if the other one does not react. */
import type { Socket } from 'node:net';
import type { Cancel, Clock } from '../../platform/clock.ts';

/** Once one side has ended: the longest time without progress, milliseconds. */
const IDLE_TIMEOUT_MS = 1000;
/** The same while written bytes have not left: their reader may be slow. */
const UNWRITTEN_IDLE_TIMEOUT_MS = 10_000;

export function closeTogether(client: Socket, upstream: Socket, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    let cancel: Cancel | undefined;
    const startTeardown = (): void => {
      cancel ??= destroyWhenIdle([client, upstream], clock);
    };
    const onClose = (other: Socket): void => {
      startTeardown();
      if (other.destroyed) {
        cancel?.();
        resolve();
      } else {
        // What the other sends has no receiver any more; it is read on so that its FIN is noticed.
        other.end();
        other.resume();
      }
    };
    client.once('end', startTeardown).once('close', () => onClose(upstream));
    upstream.once('end', startTeardown).once('close', () => onClose(client));
  });
}

/**
 * Destroys the connections once no byte has been written out and, while all are open, none received for the idle time.
 * @returns cancels it
 */
function destroyWhenIdle(sockets: readonly Socket[], clock: Clock): Cancel {
  const readProgress = (): string => {
    const open = sockets.filter(({ destroyed }) => !destroyed);
    const received = open.length > 1 ? open.map(({ bytesRead }) => bytesRead) : [];
    return [...received, ...open.map(({ writableLength }) => writableLength)].join();
  };
  let lastProgress = readProgress();
  let idleMs = 0;
  let cancel: Cancel;
  const check = (): void => {
    const progress = readProgress();
    idleMs = progress === lastProgress ? idleMs + IDLE_TIMEOUT_MS : 0;
    lastProgress = progress;
    const isUnwritten = sockets.some(({ destroyed, writableLength }) => !destroyed && writableLength > 0);
    if (idleMs < (isUnwritten ? UNWRITTEN_IDLE_TIMEOUT_MS : IDLE_TIMEOUT_MS))
      cancel = clock.after(IDLE_TIMEOUT_MS, check);
    else for (const socket of sockets) socket.destroy();
  };
  cancel = clock.after(IDLE_TIMEOUT_MS, check);
  return () => cancel();
}
