/** Remembers, for the admin port, which routes were refused for want of a scope. Counting and logging are done elsewhere. */
import type { Clock } from '../platform/clock.ts';
import type { EventObserver } from './events.ts';

/** Of one route. */
export interface InsufficientScopeRecord {
  readonly route: string;
  readonly count: number;
  /** Of the last one, epoch milliseconds. */
  readonly wallAt: number;
  /** What the last one said is needed; undefined when it did not. */
  readonly needed: string | undefined;
}

export interface InsufficientScopeRecords {
  readonly observe: EventObserver;
  /** In the order in which the routes were first refused. */
  read(): readonly InsufficientScopeRecord[];
}

/** Nothing noticed yet. */
export function createInsufficientScopeRecords(clock: Pick<Clock, 'wallNow'>): InsufficientScopeRecords {
  const notices = new Map<string, InsufficientScopeRecord>();
  return {
    observe(event) {
      if (event.kind !== 'insufficient-scope') return;
      const { route, needed } = event;
      const count = (notices.get(route)?.count ?? 0) + 1;
      notices.set(route, { route, count, wallAt: clock.wallNow(), needed });
    },
    read: () => [...notices.values()],
  };
}
