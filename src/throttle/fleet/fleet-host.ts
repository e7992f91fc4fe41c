/** Puts a throttle into its fleet: makes it a member where a fleet is configured, and shows the member what it needs to see of it. */
import type { FleetHost } from './fleet-terms.ts';
import { FleetMember } from './fleet-member.ts';
import type { Gate } from '../pacing/gate.ts';
import { DEFAULT_LEARNING } from '../adaptive/parameters.ts';
import type { ThrottleOptions } from '../throttle-options.ts';
import type { WaitingRoom } from '../queue/waiting-room.ts';

/** The parts of a throttle, and what brings them up to the present. */
export interface FleetGround {
  readonly gate: Gate;
  readonly room: WaitingRoom;
  readonly now: () => number;
  readonly pump: () => void;
}

/** Undefined without a fleet. It has not begun to ask. */
export function joinFleet({ fleet, throttle, learning, clock }: ThrottleOptions): FleetMember | undefined {
  return fleet && new FleetMember({ ...fleet, terms: throttle, learning: learning ?? DEFAULT_LEARNING, clock });
}

/** The throttle as its member sees it. */
export function createFleetHost({ gate, room, now, pump }: FleetGround): FleetHost {
  return {
    get isClosed() {
      return gate.isClosed;
    },
    get isIdle() {
      return room.nextReady === undefined && gate.inFlight === 0;
    },
    refresh() {
      gate.refresh(now());
      pump();
    },
    pauseWithOthers(statedWaitMs) {
      gate.joinPause(now(), statedWaitMs);
    },
  };
}
