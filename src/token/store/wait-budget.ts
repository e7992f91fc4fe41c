/**
 * Limits how long one replica waits for the token requests of others: per replica as long as a request may take, and three
 * times that in total. Pure: instants come in as arguments.
 */

/** One after the other. */
const MAX_REPLICAS_AWAITED = 3;

export class WaitBudget {
  readonly #perReplicaMs: number;
  readonly #deadlineAt: number;
  #replica: string | undefined;
  #replicaDeadlineAt: number;

  constructor(perReplicaMs: number, now: number) {
    this.#perReplicaMs = perReplicaMs;
    this.#replicaDeadlineAt = now + perReplicaMs;
    this.#deadlineAt = now + perReplicaMs * MAX_REPLICAS_AWAITED;
  }

  hasTimeLeft(now: number): boolean {
    return now < Math.min(this.#replicaDeadlineAt, this.#deadlineAt);
  }

  /** @param replica the one that sends the request now; a new one gets a budget of its own */
  extendForReplica(replica: string, now: number): void {
    if (replica === this.#replica) return;
    this.#replica = replica;
    this.#replicaDeadlineAt = now + this.#perReplicaMs;
  }
}
