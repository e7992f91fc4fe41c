/** Decides whether a new request may wait (pure): it is rejected when the queue is full or when it certainly cannot be served in time. */
import type { Governor } from '../pacing/governor.ts';
import type { QueueTicket } from './queue-ticket.ts';
import type { RejectionReason } from '../signals/rejection.ts';
import type { RequestQueue } from './request-queue.ts';

/** `evict`: the queue is full, and there is a place once `ticket` has been rejected. */
export type QueueDecision =
  | { readonly kind: 'admit' }
  | { readonly kind: 'evict'; readonly ticket: QueueTicket }
  | { readonly kind: 'reject'; readonly reason: RejectionReason };

/**
 * Changes nothing.
 * @param max how many may wait, beyond those that could be granted at once
 */
export function checkQueue(
  governor: Governor,
  queue: RequestQueue,
  max: number,
  ticket: QueueTicket,
  now: number,
): QueueDecision {
  const queued = queue.size;
  if (governor.pause.rejectsNew(now, queued > 0)) return { kind: 'reject', reason: 'expected_wait' };
  const grantable = governor.grantablePermits(now);
  if (queued === 0 && grantable >= 1 && ticket.deadlineAt > now) return { kind: 'admit' };
  const isFull = queued >= max + grantable;
  const evicted = isFull ? queue.evictionCandidate(ticket.queueClass, max) : undefined;
  if (isFull && evicted === undefined) return { kind: 'reject', reason: 'full' };
  const minWaitMs = governor.minWaitMs(now, queue.countAhead(ticket.queueClass));
  const isTooLong = minWaitMs > 0 && minWaitMs >= ticket.waitBudgetMs(now);
  if (isTooLong || ticket.deadlineAt <= now) return { kind: 'reject', reason: 'expected_wait' };
  return evicted === undefined ? { kind: 'admit' } : { kind: 'evict', ticket: evicted };
}
