/** The throttle, as a fleet that shares its quota calls it. */
import type { Clock } from '../../platform/clock.ts';
import type { FleetHost } from '../fleet-membership.ts';
import type { Governor } from '../pacing/governor.ts';
import type { RequestQueue } from './request-queue.ts';

export function createFleetHost(governor: Governor, queue: RequestQueue, clock: Clock, pump: () => void): FleetHost {
  return {
    get isPaused() {
      return governor.pause.isClosed;
    },
    get declaredLimits() {
      return governor.declared;
    },
    get isHighWaiting() {
      return queue.nextReadyHigh !== undefined;
    },
    get isIdle() {
      return queue.counts.ready === 0 && governor.inFlight === 0;
    },
    pump() {
      governor.applyRate(clock.now());
      pump();
    },
    pause(statedWaitMs) {
      governor.joinPause(clock.now(), statedWaitMs);
    },
  };
}
