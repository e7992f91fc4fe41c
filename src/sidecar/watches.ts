/** Joins those who follow each request on its way: spans, Server-Timing, both or nobody. */
import type { Clock } from '../platform/clock.ts';
import { watchTimes } from '../exchange/server-timing.ts';
import type { StartWatch, Watch } from '../exchange/watch.ts';

export interface WatchesOptions {
  readonly serverTiming: boolean;
  /** Undefined: nothing is traced. */
  readonly traced: StartWatch | undefined;
  readonly clock: Clock;
}

/** Undefined when nobody watches: requests then pass without a call. */
export function createWatches({ serverTiming, traced, clock }: WatchesOptions): StartWatch | undefined {
  if (!serverTiming) return traced;
  const timed: StartWatch = () => watchTimes(clock);
  return traced === undefined ? timed : (request) => join(traced(request), watchTimes(clock));
}

function join(spans: Watch, times: Watch): Watch {
  return {
    traceId: spans.traceId,
    waitBegins: (stage) => {
      spans.waitBegins(stage);
      times.waitBegins(stage);
    },
    waitEnds: () => {
      spans.waitEnds();
      times.waitEnds();
    },
    attemptBegins: (attempt) => times.attemptBegins({ ...attempt, fields: spans.attemptBegins(attempt) }),
    attemptEnds: (end) => {
      spans.attemptEnds(end);
      times.attemptEnds(end);
    },
    answerFields: () => [...spans.answerFields(), ...times.answerFields()],
    ended: (event) => {
      spans.ended(event);
      times.ended(event);
    },
  };
}
