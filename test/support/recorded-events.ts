/** Everything that a sidecar reports of itself, as one list in the order in which it happened: rare events, requests, attempts and permits. */
import type { SidecarOptions } from '../../src/composition/sidecar.ts';
import { Secrets } from '../../src/platform/secrets.ts';
import type { LocalReplyCode } from '../../src/platform/errors.ts';
import type { EventObserver, SidecarEvent } from '../../src/telemetry/events.ts';
import type {
  DebugEvent,
  RecordObservers,
  RecordPermit,
  RequestRecord,
  RouteCounters,
} from '../../src/telemetry/request-record.ts';

export type RequestEnded = { readonly kind: 'request-ended' } & RequestRecord;
/** Comes before the end of its request. */
interface LocalReply {
  readonly kind: 'local-reply';
  readonly route: string;
  readonly code: LocalReplyCode;
}
export type RecordedEvent = SidecarEvent | DebugEvent | RequestEnded | LocalReply;
export type RecordedEventOf<K extends RecordedEvent['kind']> = Extract<RecordedEvent, { kind: K }>;

type Push = (event: RecordedEvent) => void;

/** For a whole sidecar: a log that writes nothing. */
export function createRecordingLog(push: Push = () => undefined): SidecarOptions['log'] {
  return {
    observe: push,
    recorders: { requests: [(record) => pushRecord(push, record)], debug: push },
    secrets: new Secrets({ now: () => 0 }),
    setLevel: () => undefined,
    droppedLines: () => 0,
    deliveryProblem: () => undefined,
  };
}

/** For the parts of one route. */
export function createRecordingCounters(push: Push, route = 'default'): RouteCounters {
  return {
    recordAttempt: (outcome, durationMs, isOwn) => push({ kind: 'attempt-ended', route, outcome, durationMs, isOwn }),
    recordRequest: (record) => pushRecord(push, record),
  };
}

/** For a throttle. */
export function createPermitRecorder(push: Push, route = 'default'): RecordPermit {
  return (waitedMs) => push({ kind: 'permit-granted', route, waitedMs });
}

function pushRecord(push: Push, record: RequestRecord): void {
  if (record.localReply !== undefined) push({ kind: 'local-reply', route: record.route, code: record.localReply });
  push({ kind: 'request-ended', ...record });
}

/** Who counts or logs what a sidecar reports. */
interface Reporters {
  readonly observe?: EventObserver;
  readonly recorders?: RecordObservers;
  readonly bindRoute?: (route: string) => RouteCounters;
  readonly bindThrottle?: (name: string) => RecordPermit;
}

/** Reports an event as the part does in which it happens. */
export function report(event: RecordedEvent, { observe, recorders, bindRoute, bindThrottle }: Reporters): void {
  switch (event.kind) {
    case 'request-ended': {
      bindRoute?.(event.route).recordRequest(event);
      for (const recordRequest of recorders?.requests ?? []) recordRequest(event);
      return;
    }
    case 'attempt-ended':
      bindRoute?.(event.route).recordAttempt(event.outcome, event.durationMs, event.isOwn);
      recorders?.debug?.(event);
      return;
    case 'permit-granted':
      bindThrottle?.(event.route)(event.waitedMs);
      recorders?.debug?.(event);
      return;
    case 'local-reply':
      return;
    default:
      observe?.(event);
  }
}
