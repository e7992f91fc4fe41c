/**
 * What a throttle asks of the fleet whose quota it shares, and what the fleet may ask of the throttle. A fleet wraps the
 * throttle's permits and its rate; where it keeps the quota is not known here (fleet/shared-quota implements this).
 */
import type { DeclaredLimits } from './declared/declared-limits.ts';
import type { PermitSource } from './pacing/permit-bucket.ts';
import type { RatePolicy } from './pacing/rate-policy.ts';
import type { FleetQuotaState, RateSettings } from './throttle.ts';

export interface FleetMembership {
  /** Wraps the source of permits that the throttle has without a fleet. Called once. */
  wrapPermits(own: PermitSource): PermitSource;
  /** Wraps the rate that the throttle has without a fleet. Called again when the configured rate changes. */
  wrapRatePolicy(own: RatePolicy): RatePolicy;
  /** Starts to share. Until then nothing is sent and no timer is set. */
  start(host: FleetHost): void;
  /** A declared limit has few leased permits left, or none. Called often: each time is one request at most. */
  requestPermits(): void;
  /** @param count permits that waiting requests could use now */
  setWaiting(count: number): void;
  /** The upstream refused a call of this replica for its rate. */
  reportRefusal(statedWaitMs: number | undefined): void;
  reconfigure(settings: RateSettings): void;
  /** Leaves the fleet; further calls do nothing. */
  leave(): void;
  state(now: number): FleetQuotaState;
}

export interface FleetHost {
  /** A pause is not over, or its probe has no response yet. */
  readonly isPaused: boolean;
  /** Undefined while no limit is declared. */
  readonly declaredLimits: DeclaredLimits | undefined;
  /** A request of high priority waits for a permit. */
  readonly isHighWaiting: boolean;
  /** No call is in flight, and no request waits for a permit. */
  readonly isIdle: boolean;
  /** Rate or permits may have changed: grants what can be granted now. */
  pump(): void;
  /** Another replica was refused: pauses as for a refusal here. */
  pause(statedWaitMs: number | undefined): void;
}
