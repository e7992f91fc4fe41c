/** What is kept of the past in words: notable events, the last calls, and the routes that lack a scope. The ring of samples has the numbers. */
import type { Clock } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import type { RecordRequest } from '../../telemetry/request-record.ts';
import { EventLog } from './event-log.ts';
import { LastFaults } from './last-faults.ts';
import { RecentCalls } from './recent-calls.ts';
import { ScopeRefusalLog } from './scope-refusals.ts';

export interface Activity {
  readonly observe: EventObserver;
  readonly recordRequest: RecordRequest;
  readonly eventLog: EventLog;
  /** Undefined when calls are not kept. */
  readonly recentCalls: RecentCalls | undefined;
  readonly scopeRefusals: ScopeRefusalLog;
  readonly lastFaults: LastFaults;
}

/** @param keepsCalls whether the last calls are kept, with their paths. Default true */
export function createActivity(clock: Pick<Clock, 'wallNow'>, keepsCalls = true): Activity {
  const wallNow = (): number => clock.wallNow();
  const eventLog = new EventLog(wallNow);
  const recentCalls = keepsCalls ? new RecentCalls() : undefined;
  const scopeRefusals = new ScopeRefusalLog(wallNow);
  const lastFaults = new LastFaults(wallNow);
  return {
    eventLog,
    recentCalls,
    scopeRefusals,
    lastFaults,
    observe(event) {
      if (event.kind === 'insufficient-scope') scopeRefusals.add(event);
      if (event.kind === 'attempt-failed') lastFaults.add(event);
      eventLog.observe(event);
    },
    recordRequest(record) {
      recentCalls?.add(record, wallNow());
      if (record.localReply !== undefined) eventLog.addLocalReply(record.localReply);
    },
  };
}
