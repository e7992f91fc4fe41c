/**
 * The door: may a new request wait at all. It turns away only who certainly could not be served in time or has no place by rule;
 * what becomes of those, and the words for it, are admission's.
 */
import type { PermitGate } from '../pacing/permit-gate.ts';
import type { QueueTicket } from './queue-ticket.ts';
import type { RejectionReason } from '../signals/rejection.ts';
import type { RequestQueue } from './request-queue.ts';

/** What a new ticket finds at the door. */
export type AdmissionDecision =
  | { readonly kind: 'in' }
  /** The queue is full: there is a place once `loser` has been refused. */
  | { readonly kind: 'in-place-of'; readonly loser: QueueTicket }
  | { readonly kind: 'refused'; readonly reason: RejectionReason };

const ADMIT: AdmissionDecision = { kind: 'in' };

/**
 * Changes nothing.
 * @param max how many may wait, beyond those that could be granted at once
 */
export function admissionCheck(
  gate: PermitGate,
  room: RequestQueue,
  max: number,
  ticket: QueueTicket,
  now: number,
): AdmissionDecision {
  const queued = room.size;
  if (gate.rejectsNew(now, queued > 0)) return reject('expected_wait');
  const grantable = gate.grantablePermits(now);
  // Nobody is there, and a permit is: nothing to reckon.
  if (queued === 0 && grantable >= 1 && ticket.deadlineAt > now) return ADMIT;
  const isFull = queued >= max + grantable;
  const loser = isFull ? room.evictionCandidate(ticket.queueClass, max) : undefined;
  if (isFull && loser === undefined) return reject('full');
  const waitMs = gate.minWaitMs(now, room.countAhead(ticket.queueClass));
  const isTooLong = waitMs > 0 && waitMs >= ticket.waitBudgetMs(now);
  if (isTooLong || ticket.deadlineAt <= now) return reject('expected_wait');
  return loser === undefined ? ADMIT : { kind: 'in-place-of', loser };
}

function reject(reason: RejectionReason): AdmissionDecision {
  return { kind: 'refused', reason };
}
