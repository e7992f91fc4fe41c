/**
 * Whether this replica leads (pure): it leads when the store says so, stops when another replica does, and keeps what it knows while
 * the store is away, so that nothing need be learned again. FleetLeader does the leader's work.
 */
import type { QuotaReply } from './quota-store.ts';
import { FleetLeader, parseModel } from './fleet-leader.ts';
import type { ClockOffset } from './clock-offset.ts';
import type { LearnedLimit, RateSettings } from '../../throttle/throttle.ts';

/** All replicas report at once when a pause is pushed; the leader waits this long for them. */
const REPORT_WAIT_MS = 60;
/** After a reconnection the former leader has priority for this time: it knows most. */
const FORMER_LEADER_PRIORITY_MS = 3_000;

/** The present leader, if it is this replica, and the former one. */
export class LeaderElection {
  // Only this class writes the public fields.
  /** Undefined while another replica leads. */
  leader: FleetLeader | undefined;
  /** From this instant on all replicas have reported for the last pause. */
  reportsCompleteAt = Infinity;
  readonly #clockOffset: ClockOffset;
  #settings: RateSettings;
  /** Kept while the store is away. */
  #formerLeader: FleetLeader | undefined;
  #model = '';
  #reconnectedAt = -Infinity;

  constructor(clockOffset: ClockOffset, settings: RateSettings) {
    this.#clockOffset = clockOffset;
    this.#settings = settings;
  }

  reconfigure(settings: RateSettings): void {
    const isSame = hasSameLimit(settings, this.#settings);
    this.#settings = settings;
    if (isSame) return;
    // The model in the store keeps what was learned.
    this.leader = undefined;
    this.#formerLeader = undefined;
  }

  /** @param isBack it was connected before */
  onConnected(now: number, isBack: boolean): void {
    if (isBack) this.#reconnectedAt = now;
  }

  onDisconnected(): void {
    this.#formerLeader = this.leader ?? this.#formerLeader;
    this.leader = undefined;
  }

  onPaused(now: number): void {
    this.reportsCompleteAt = now + REPORT_WAIT_MS;
  }

  /** Another replica should lead for now. */
  isYielding(now: number): boolean {
    return this.#formerLeader === undefined && now < this.#reconnectedAt + FORMER_LEADER_PRIORITY_MS;
  }

  /** Position up to which this replica has learned from the reports; 0 when it has learned from none. */
  get reportsReadUpTo(): number {
    return (this.leader ?? this.#formerLeader)?.reportsReadUpTo ?? 0;
  }

  /**
   * @param ownSnapshot what this process has learned without the fleet; the whole limit only if there is no other replica
   * @returns permits per second above the lease, for the leader's probes
   */
  applyReply(now: number, reply: QuotaReply, ownSnapshot: () => object | undefined): number {
    if (reply.model !== '') this.#model = reply.model;
    if (!reply.isLeader) {
      this.leader = undefined;
      if (now > this.#reconnectedAt + FORMER_LEADER_PRIORITY_MS) this.#formerLeader = undefined;
      return 0;
    }
    const leader = (this.leader ??= this.#formerLeader ?? this.#createLeader(now, reply, ownSnapshot));
    if (reply.isFleetPaused && this.reportsCompleteAt === Infinity) this.onPaused(now);
    return leader.applyReply(now, reply, reply.isFleetPaused && now >= this.reportsCompleteAt);
  }

  learned(wallAt: (at: number) => number): Omit<LearnedLimit, 'rate'> | undefined {
    if (this.leader !== undefined) return this.leader.learned(wallAt);
    const { learned } = parseModel(this.#model);
    return learned && { ...learned, since: wallAt(this.#clockOffset.toLocalTime(learned.since)) };
  }

  snapshot(now: number): object | undefined {
    const known = this.leader?.snapshot(now) ?? parseModel(this.#model).snapshot;
    return isObject(known) ? known : undefined;
  }

  #createLeader(now: number, reply: QuotaReply, ownSnapshot: () => object | undefined): FleetLeader {
    const { rate, burst } = this.#settings;
    const configured = rate === 'auto' ? undefined : { rate, burst };
    const { rate: storedRate = Infinity, replicaCount, reportsKeptFrom: reportsFrom } = reply;
    const isStored = storedRate < (this.#settings.maxRate ?? Infinity);
    const options = { ...this.#settings, isOfFleet: true };
    const model = parseModel(this.#model);
    const known =
      (isObject(model.snapshot) ? withoutUse(model.snapshot) : undefined) ??
      (isStored ? createRateSnapshot(storedRate) : replicaCount === 1 ? ownSnapshot() : undefined);
    // To learn from the same calls again is exact; a model has only their result.
    const snapshot = model.learnedFrom === reportsFrom ? undefined : known;
    const until = Math.min(now, this.#clockOffset.toLocalTime(model.until ?? Infinity));
    const learnedFrom = snapshot === undefined ? reportsFrom : undefined;
    const leader = new FleetLeader(this.#clockOffset, configured, options, learnedFrom);
    leader.restore(now, snapshot, snapshot === undefined ? -Infinity : until);
    return leader;
  }
}

/** The burst is unused where the rate is learned; the number in flight is each replica's own. */
function hasSameLimit(one: RateSettings, other: RateSettings): boolean {
  if (one.rate !== other.rate) return false;
  return one.rate === 'auto' ? one.maxRate === other.maxRate : one.burst === other.burst;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The calls in use come with the reports. */
function withoutUse(snapshot: object): object {
  const { second } = snapshot as { readonly second?: unknown };
  return { ...snapshot, used: 0, ...(isObject(second) && { second: { ...second, used: 0 } }) };
}

/** A start for a leader when its predecessor published a rate without a model. */
function createRateSnapshot(rate: number): object {
  return { kind: 'bucket', windowMs: 0, limit: 1, rate, margin: 1, used: 0 };
}
