/** A throttle in virtual time with its events at hand, and the few moves that most tests make. */
import { readMadeAt } from '../../src/platform/origin-clock.ts';
import type { ReceivedCall } from '../../src/throttle/declared/call-match.ts';
import type { DeclaredLimit } from '../../src/throttle/declared/declared-limit.ts';
import { createThrottle, type ThrottleOptions } from '../../src/throttle/queue/queueing-throttle.ts';
import { readRateLimitSignal } from '../../src/throttle/signals/rate-limit-signal.ts';
import { describeEndpoint } from '../../src/throttle/endpoint.ts';
import type { PermitReport, Permit, QueueClass, Throttle, Ticket } from '../../src/throttle/throttle.ts';
import type { LearnedState } from '../../src/throttle/throttle.ts';
import { createPermitRecorder } from '../support/recorded-events.ts';
import type { RecordedEvent } from '../support/recorded-events.ts';
import { ManualClock } from '../support/manual-clock.ts';

export interface Settings {
  readonly rate?: number | 'auto';
  readonly burst?: number;
  readonly maxInFlight?: number;
  readonly isMaxInFlightGiven?: boolean;
  readonly maxStreams?: number;
  readonly maxPauseMs?: number;
  readonly queueMax?: number;
  readonly timeoutMs?: number;
  readonly limits?: readonly DeclaredLimit[];
  /** Default false. */
  readonly lanes?: boolean;
  /** What an earlier process had learned. Default: nothing. */
  readonly learned?: object;
  readonly restored?: LearnedState | undefined;
}

export class Fixture {
  readonly clock = new ManualClock();
  readonly events: RecordedEvent[] = [];
  readonly throttle: Throttle;

  constructor(settings: Settings = {}) {
    const { rate = 'auto', burst = 1, maxInFlight = 64, maxStreams = 100, maxPauseMs = 300_000 } = settings;
    const { isMaxInFlightGiven, limits, lanes } = settings;
    const options: ThrottleOptions = {
      route: 'default',
      throttle: { rate, burst, maxInFlight, isMaxInFlightGiven, maxStreams, maxPauseMs, limits, lanes },
      queue: { max: settings.queueMax ?? 1000, timeoutMs: settings.timeoutMs ?? 30_000 },
      restored:
        settings.restored ??
        (settings.learned && { version: 1, wallAt: this.clock.wallNow(), governor: settings.learned }),
      clock: this.clock,
      random: () => 0.5,
      observe: (event) => this.events.push(event),
      recordPermit: createPermitRecorder((event) => this.events.push(event)),
    };
    this.throttle = createThrottle(options);
  }

  /** @param withinMs from now to the deadline */
  enter(withinMs = 60_000, queueClass?: QueueClass, call?: ReceivedCall): Ticket {
    const now = this.clock.now();
    const endpoint = call === undefined ? '' : describeEndpoint(call.method, call.target);
    return this.throttle.enter(now + withinMs, queueClass, true, endpoint, now, call);
  }

  /** A request that has its body already, at the gate. */
  ask(withinMs = 60_000, queueClass?: QueueClass, call?: ReceivedCall): Asking {
    return new Asking(this.enter(withinMs, queueClass, call));
  }

  /** Reasons of the rejections so far. */
  get rejections(): string[] {
    return this.events.flatMap((event) => (event.kind === 'queue-rejected' ? [event.reason] : []));
  }
}

/** A wait for a permit, whose outcome can be looked at. */
export class Asking {
  readonly ticket: Ticket;
  permit: Permit | undefined;
  error: unknown;
  /** Settles with the wait, never rejects. */
  readonly settled: Promise<void>;

  constructor(ticket: Ticket) {
    this.ticket = ticket;
    this.settled = ticket
      .waitForBodySlot()
      .then(() => ticket.waitForPermit())
      .then(
        (permit) => {
          this.permit = permit;
        },
        (error: unknown) => {
          this.error = error;
        },
      );
  }

  get outcome(): 'waits' | 'granted' | 'refused' {
    if (this.permit !== undefined) return 'granted';
    return this.error === undefined ? 'waits' : 'refused';
  }
}

export const ACCEPTED: PermitReport = { kind: 'accepted' };

export function rateLimited(retryAfter?: string, status = 429): PermitReport {
  const signal = readRateLimitSignal(
    status,
    new Map(retryAfter === undefined ? [] : [['retry-after', retryAfter]]),
    readMadeAt(undefined, undefined, 0),
  );
  const fields = retryAfter === undefined ? {} : { 'retry-after': Number(retryAfter) };
  return { kind: 'rate-limited', signal, fields };
}
