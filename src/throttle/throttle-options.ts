/** What createThrottle takes. */
import type { Clock, Random } from '../platform/clock.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { RecordPermit } from '../telemetry/request-record.ts';
import type { FleetMembership } from './fleet-membership.ts';
import type { LearningParameters } from './adaptive/learning-parameters.ts';
import type { LearnedState, ThrottleTerms } from './throttle.ts';

export interface ThrottleOptions extends ThrottleTerms {
  /** The route's configured name, for events and state. */
  readonly route: string;
  /** What an earlier process had learned. */
  readonly restored?: LearnedState | undefined;
  /** The fleet whose quota it shares; absent: this process is alone. */
  readonly fleet?: FleetMembership | undefined;
  /** For experiments. */
  readonly learning?: LearningParameters | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
  /** Called for each permit. Default: permits are not counted. */
  readonly recordPermit?: RecordPermit;
}
