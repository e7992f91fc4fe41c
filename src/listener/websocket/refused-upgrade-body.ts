/**
 * How fast an answer that is no upgrade comes, and for how long it may stop. http-proxy-3 writes it to the client without asking whether
 * the client takes it, and waits for its rest without end.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Cancel, Clock } from '../../platform/clock.ts';
import { idleTimeoutFailure, type UpstreamFailure } from '../../upstream/failure.ts';

/** The longest silence within the answer, milliseconds; 0 = no limit. */
export interface RefusedUpgradeBodyOptions {
  readonly clock: Clock;
  readonly bodyIdleTimeoutMs: number;
}

/**
 * Reads the answer no faster than the client does.
 * @param onSilence called once when it has come no further for too long, whoever is to blame; what becomes of it is the caller's
 */
export function limitBodyToClientPace(
  answer: IncomingMessage,
  socket: Duplex,
  { clock, bodyIdleTimeoutMs }: RefusedUpgradeBodyOptions,
  onSilence: (failure: UpstreamFailure) => void,
): void {
  let silentSince = clock.now();
  let cancel: Cancel | undefined;
  const look = (): void => {
    const leftMs = silentSince + bodyIdleTimeoutMs - clock.now();
    // One timer, moved along when it fires: bytes cost nothing.
    if (leftMs > 0) cancel = clock.after(leftMs, look);
    else onSilence(idleTimeoutFailure(answer.complete || answer.isPaused() ? 'client' : 'upstream', bodyIdleTimeoutMs));
  };
  answer.on('data', () => {
    silentSince = clock.now();
    // What this chunk does to the buffer is seen with the next one: one too many is held, and no more.
    if (socket.writableNeedDrain) answer.pause();
  });
  socket.on('drain', () => {
    silentSince = clock.now();
    answer.resume();
  });
  // The answer may be complete while the client still has to take the rest of it.
  socket.once('close', () => {
    cancel?.();
    answer.destroy();
  });
  if (bodyIdleTimeoutMs > 0) look();
}
