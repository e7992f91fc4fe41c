/** What a member of a fleet is told of the throttle that it belongs to: how it is configured, and how its queue is. */
import type { Clock } from '../../platform/clock.ts';
import type { QuotaStore } from './quota-store.ts';
import type { LearningParameters } from '../adaptive/learning-parameters.ts';

/** What is configured, and may change. */
export interface FleetThrottleSettings {
  /** Permits per second of all replicas together, or `auto`. */
  readonly rate: number | 'auto';
  /** Permits; unused with `auto`. */
  readonly burst: number;
  /** Permits per second that `auto` never exceeds; absent: none. */
  readonly maxRate?: number | undefined;
  readonly maxInFlight: number;
}

/** What a member is made from. */
export interface FleetMemberOptions {
  readonly board: QuotaStore;
  /** Tells replicas apart. */
  readonly id: string;
  readonly settings: FleetThrottleSettings;
  readonly learning: LearningParameters;
  readonly clock: Clock;
}

/** The throttle around it. */
export interface FleetHost {
  /** What is granted may have changed. */
  refresh(): void;
  /** Others were refused: all pause. */
  joinPause(statedWaitMs: number | undefined): void;
  /** A pause is not over, or its probe not answered. */
  readonly isClosed: boolean;
  /** No call is under way, and nobody waits. */
  readonly isIdle: boolean;
}
