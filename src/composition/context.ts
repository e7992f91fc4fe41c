/** What all parts of one sidecar have in common. */
import type { Clock, Random } from '../platform/clock.ts';
import type { Secrets } from '../platform/secrets.ts';
import type { EventObserver } from '../telemetry/events.ts';

export interface SidecarContext {
  /** Gets each secret when it is read; masks texts from outside. */
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
}
