/** Gives the end of a request's lifeline the name of the stage in which it came: each has its own reply. */
import { SidecarError } from '../errors.ts';
import { LifelineEnded } from './lifeline.ts';

export type Stage = 'token' | 'queue' | 'body' | 'upstream';

/** Gives a deadline that passes in `wait` the name of the stage in which it passed. */
export async function inStage<T>(stage: Stage, wait: Promise<T>): Promise<T> {
  try {
    return await wait;
  } catch (error) {
    throw error instanceof LifelineEnded ? nameEnd(stage, error) : error;
  }
}

/** The error that a request ends with whose lifeline ended in this stage. */
export function nameEnd(stage: Stage, reason: LifelineEnded): Error {
  if (reason.end.kind === 'failed') return reason.end.error;
  if (reason.end.kind === 'client-left') return reason;
  switch (stage) {
    case 'token':
      return new SidecarError('TOKEN_UNAVAILABLE', 'no access token was to be had before the deadline', {
        retryAfterMs: 1000,
      });
    case 'queue':
      return new SidecarError('QUEUE_TIMEOUT', 'the deadline passed in the queue', { retryAfterMs: 1000 });
    case 'body':
      return new SidecarError('REQUEST_TIMEOUT', 'the deadline passed before the request body was complete');
    case 'upstream':
      return new SidecarError('UPSTREAM_TIMEOUT', 'the upstream did not answer before the deadline');
  }
}
