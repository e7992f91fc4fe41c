/**
 * How long a replica waits for what others ask for: for each of them as long as its request may take, for all together not
 * for ever. Pure: instants come in as arguments.
 */

/** Others waited for, one after the other. */
const MAX_REPLICAS_AWAITED = 3;

export class WaitBudget {
  readonly #perReplicaMs: number;
  readonly #deadlineAt: number;
  #replica: string | undefined;
  #replicaDeadlineAt: number;

  /** @param eachMs for one of them, milliseconds */
  constructor(eachMs: number, now: number) {
    this.#perReplicaMs = eachMs;
    this.#replicaDeadlineAt = now + eachMs;
    this.#deadlineAt = now + eachMs * MAX_REPLICAS_AWAITED;
  }

  hasTimeLeft(now: number): boolean {
    return now < Math.min(this.#replicaDeadlineAt, this.#deadlineAt);
  }

  /** The one who asks now, by name; a new one is given time of its own. */
  extendForReplica(asker: string, now: number): void {
    if (asker === this.#replica) return;
    this.#replica = asker;
    this.#replicaDeadlineAt = now + this.#perReplicaMs;
  }
}
