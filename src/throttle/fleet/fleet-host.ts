/** Puts a throttle into its fleet: makes it a member where a fleet is configured, and shows the member what it needs to see of it. */
import type { FleetHost } from './fleet-contract.ts';
import { FleetMember } from './fleet-member.ts';
import type { PermitGate } from '../pacing/permit-gate.ts';
import { DEFAULT_LEARNING } from '../adaptive/learning-parameters.ts';
import type { ThrottleOptions } from '../throttle-options.ts';
import type { RequestQueue } from '../queue/request-queue.ts';

/** The parts of a throttle, and what brings them up to the present. */
export interface FleetHostParts {
  readonly gate: PermitGate;
  readonly queue: RequestQueue;
  readonly now: () => number;
  readonly pump: () => void;
}

/** Undefined without a fleet. It has not begun to ask. */
export function createFleetMember({ fleet, throttle, learning, clock }: ThrottleOptions): FleetMember | undefined {
  return fleet && new FleetMember({ ...fleet, settings: throttle, learning: learning ?? DEFAULT_LEARNING, clock });
}

/** The throttle as its member sees it. */
export function createFleetHost({ gate, queue, now, pump }: FleetHostParts): FleetHost {
  return {
    get isClosed() {
      return gate.isClosed;
    },
    get isIdle() {
      return queue.nextReady === undefined && gate.inFlight === 0;
    },
    refresh() {
      gate.refresh(now());
      pump();
    },
    joinPause(statedWaitMs) {
      gate.joinPause(now(), statedWaitMs);
    },
  };
}
