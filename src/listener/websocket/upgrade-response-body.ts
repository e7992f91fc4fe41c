/**
 * Backpressure and an idle timeout for the body of a response that declines an upgrade: http-proxy-3 writes it without regard to how
 * fast the client reads, and waits for its end without limit.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ExchangeParts } from '../../exchange/exchange.ts';
import type { Cancel } from '../../platform/clock.ts';
import { idleTimeoutFailure, type UpstreamFailure } from '../../upstream/failure.ts';

/**
 * Reads the response no faster than the client does.
 * @param onIdle called once after the idle timeout; the failure names the side that stopped
 */
export function limitBodyToClientPace(
  response: IncomingMessage,
  socket: Duplex,
  { clock, timeouts: { bodyIdleTimeoutMs } }: Pick<ExchangeParts, 'clock' | 'timeouts'>,
  onIdle: (failure: UpstreamFailure) => void,
): void {
  let lastProgressAt = clock.now();
  let cancel: Cancel | undefined;
  const check = (): void => {
    const leftMs = lastProgressAt + bodyIdleTimeoutMs - clock.now();
    // One timer that is set again when it fires, so that chunks cost no timer.
    if (leftMs > 0) cancel = clock.after(leftMs, check);
    else
      onIdle(idleTimeoutFailure(response.complete || response.isPaused() ? 'client' : 'upstream', bodyIdleTimeoutMs));
  };
  response.on('data', () => {
    lastProgressAt = clock.now();
    // http-proxy-3 writes this chunk after this listener, so that at most one more is buffered.
    if (socket.writableNeedDrain) response.pause();
  });
  socket.on('drain', () => {
    lastProgressAt = clock.now();
    response.resume();
  });
  // The response may be complete while the client still reads the rest of it.
  socket.once('close', () => {
    cancel?.();
    response.destroy();
  });
  if (bodyIdleTimeoutMs > 0) check();
}
