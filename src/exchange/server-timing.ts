/**
 * The times of one request as a `Server-Timing` header of its response (W3C Server Timing): waits in the queue and for a token,
 * attempts until the head, and their number. The time of the bodies is not in it.
 */
import type { Clock } from '../platform/clock.ts';
import type { Stage, RequestTracer } from './request-tracer.ts';

/** For one request. */
export function createServerTimingTracer(clock: Clock): RequestTracer {
  const spentMs: Record<Stage, number> = { token: 0, queue: 0, body: 0, upstream: 0 };
  let wait: { readonly stage: Stage; readonly since: number } | undefined;
  let attemptedMs = 0;
  let attempts = 0;
  let attemptSince: number | undefined;
  const closeWait = (): void => {
    if (wait !== undefined) spentMs[wait.stage] += clock.now() - wait.since;
    wait = undefined;
  };
  const closeAttempt = (): void => {
    if (attemptSince !== undefined) attemptedMs += clock.now() - attemptSince;
    attemptSince = undefined;
  };
  return {
    traceId: undefined,
    startWait: (stage) => {
      wait = { stage, since: clock.now() };
    },
    endWait: closeWait,
    startAttempt: ({ headers }) => {
      attempts++;
      attemptSince = clock.now();
      return headers;
    },
    endAttempt: closeAttempt,
    responseHeaders: () => {
      // The response head of the current attempt is about to be written.
      closeWait();
      closeAttempt();
      return [
        'Server-Timing',
        formatServerTiming({ queueMs: spentMs.queue, tokenMs: spentMs.token, attemptedMs, attempts }),
      ];
    },
    endRequest: () => undefined,
  };
}

interface Timings {
  readonly queueMs: number;
  readonly tokenMs: number;
  readonly attemptedMs: number;
  readonly attempts: number;
}

function formatServerTiming({ queueMs, tokenMs, attemptedMs, attempts }: Timings): string {
  const durations = [
    ['queue', queueMs],
    ['token', tokenMs],
    ['upstream', attemptedMs],
  ] as const;
  const metrics = durations.map(([name, ms]) => `${name};dur=${String(Math.round(ms * 10) / 10)}`);
  return [...metrics, `attempts;desc="${String(attempts)}"`].join(', ');
}
