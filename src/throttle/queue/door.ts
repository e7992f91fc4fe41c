/**
 * The door: may a new request wait at all. It turns away only who certainly could not be served in time or has no place by rule;
 * what becomes of those, and the words for it, are admission's.
 */
import type { Gate } from '../pacing/gate.ts';
import type { QueueTicket } from './queue-ticket.ts';
import type { RefusalReason } from '../signals/refusal.ts';
import type { WaitingRoom } from './waiting-room.ts';

/** What a new ticket finds at the door. */
export type Entry =
  | { readonly kind: 'in' }
  /** The queue is full: there is a place once `loser` has been refused. */
  | { readonly kind: 'in-place-of'; readonly loser: QueueTicket }
  | { readonly kind: 'refused'; readonly reason: RefusalReason };

const IN: Entry = { kind: 'in' };

/**
 * Changes nothing.
 * @param max how many may wait, beyond those that could be granted at once
 */
export function judgeEntry(gate: Gate, room: WaitingRoom, max: number, ticket: QueueTicket, now: number): Entry {
  const queued = room.size;
  if (gate.turnsAway(now, queued > 0)) return refuse('expected_wait');
  const grantable = gate.grantable(now);
  // Nobody is there, and a permit is: nothing to reckon.
  if (queued === 0 && grantable >= 1 && ticket.deadlineAt > now) return IN;
  const isFull = queued >= max + grantable;
  const loser = isFull ? room.displaceableBy(ticket.standing, max) : undefined;
  if (isFull && loser === undefined) return refuse('full');
  const waitMs = gate.certainWaitMs(now, room.countAhead(ticket.standing));
  const isTooLong = waitMs > 0 && waitMs >= ticket.patienceMs(now);
  if (isTooLong || ticket.deadlineAt <= now) return refuse('expected_wait');
  return loser === undefined ? IN : { kind: 'in-place-of', loser };
}

function refuse(reason: RefusalReason): Entry {
  return { kind: 'refused', reason };
}
