/**
 * The end of an upgraded connection: once one side has ended or is gone, both are closed within a short time, also when the
 * other side does not react. Passing bytes and FIN on is http-proxy-3's.
 */
import type { Socket } from 'node:net';
import type { Cancel, Clock } from '../../platform/clock.ts';

/** How long a connection of which one side has ended may stay without a byte that moves, milliseconds. */
const IDLE_TIMEOUT_MS = 1000;
/** The same while bytes are unwritten: their reader may be slow. */
const UNWRITTEN_IDLE_TIMEOUT_MS = 10_000;

/** Resolves when both sides of an upgraded connection are closed. */
export function closeTogether(client: Socket, upstream: Socket, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    let cancel: Cancel | undefined;
    const onEnd = (): void => {
      cancel ??= destroyWhenIdle([client, upstream], clock);
    };
    const onClose = (other: Socket): void => {
      onEnd();
      if (other.destroyed) {
        cancel?.();
        resolve();
      } else {
        // Its data has no receiver: it is discarded, so that its FIN is noticed.
        other.end();
        other.resume();
      }
    };
    client.once('end', onEnd).once('close', () => onClose(upstream));
    upstream.once('end', onEnd).once('close', () => onClose(client));
  });
}

/**
 * Destroys connections on which nothing moves any more: no byte is written out, and, while all of them are open, none is received.
 * @returns cancels the watch
 */
function destroyWhenIdle(sockets: readonly Socket[], clock: Clock): Cancel {
  const measure = (): string => {
    const open = sockets.filter(({ destroyed }) => !destroyed);
    const received = open.length > 1 ? open.map(({ bytesRead }) => bytesRead) : [];
    return [...received, ...open.map(({ writableLength }) => writableLength)].join();
  };
  let seen = measure();
  let stillMs = 0;
  let cancel: Cancel;
  const look = (): void => {
    const now = measure();
    stillMs = now === seen ? stillMs + IDLE_TIMEOUT_MS : 0;
    seen = now;
    const isUnwritten = sockets.some(({ destroyed, writableLength }) => !destroyed && writableLength > 0);
    if (stillMs < (isUnwritten ? UNWRITTEN_IDLE_TIMEOUT_MS : IDLE_TIMEOUT_MS))
      cancel = clock.after(IDLE_TIMEOUT_MS, look);
    else for (const socket of sockets) socket.destroy();
  };
  cancel = clock.after(IDLE_TIMEOUT_MS, look);
  return () => cancel();
}
