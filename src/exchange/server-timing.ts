/**
 * Where the time of one request went, as a `Server-Timing` field of its answer (W3C Server Timing): what it waited in the queue and
 * for a token, what its attempts took until the head, and how many there were. Of its own body's time nothing is said.
 */
import type { Clock } from '../platform/clock.ts';
import type { Stage, RequestTracer } from './request-tracer.ts';

/** Starts counting for one request. */
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
      // The head of the attempt under way is what is about to be written.
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
