/** A throttle's state, read from its parts (pure). */
import type { PermitGate } from './pacing/permit-gate.ts';
import type { FleetQuotaState, ThrottleState, ThrottleTerms } from './throttle.ts';
import type { RequestQueue } from './queue/request-queue.ts';

export interface ThrottleParts {
  readonly gate: PermitGate;
  readonly queue: RequestQueue;
  readonly terms: ThrottleTerms;
  readonly fleet: FleetQuotaState | undefined;
}

/** @param wallAt turns a monotonic instant into epoch milliseconds */
export function readThrottleState(
  { gate, queue, terms, fleet }: ThrottleParts,
  now: number,
  wallAt: (at: number) => number,
): Omit<ThrottleState, 'route' | 'recentSignals' | 'refusalProposals'> {
  return {
    mode: terms.throttle.rate === 'auto' ? 'auto' : 'static',
    rate: gate.rate,
    pausedMs: gate.pausedMs(now),
    queued: queue.size,
    queueMax: terms.queue.max,
    queuedByPriority: queue.sizesByPriority(),
    readingBodies: queue.counts.buffering,
    stalledBodies: queue.counts.stalled,
    inFlight: gate.inFlight,
    streams: gate.streams,
    inFlightLimit: gate.inFlightLimit,
    learned: gate.learned(wallAt),
    usage: gate.usage(now),
    fleet,
  };
}
