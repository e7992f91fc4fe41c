/** The question whether a refused operation has a limit of its own, while it is open (pure). */
import type { RateLimitReport } from '../throttle.ts';
import type { Lane, LaneGrant } from './lane.ts';

/** A witness without a response for so long holds up no further call. */
const WITNESS_TIMEOUT_MS = 2_000;
/** From so many refused operations on the limit is the route's. */
const MIN_OPERATIONS_OF_ROUTE = 3;
/** Calls sent at a smaller distance may overtake each other. */
const MIN_DISTANCE_MS = 5;

export class Inquest {
  /** Lanes of the refused operations, which are no witnesses. */
  readonly lanes: Set<Lane>;
  /** The route learns of these, if the limit is its own. */
  readonly refusals: { readonly grant: LaneGrant; readonly report: RateLimitReport }[];
  /** Grant of the newest refused call. */
  refusedAt: number;
  #witness: LaneGrant | undefined;
  readonly #callsPerMs: number;

  /** @param callsPerMs calls of all operations, by which a limit for all would bring permits */
  constructor(lane: Lane, grant: LaneGrant, report: RateLimitReport, callsPerMs: number) {
    this.lanes = new Set([lane]);
    this.refusals = [{ grant, report }];
    this.refusedAt = grant.at;
    this.#callsPerMs = callsPerMs;
  }

  get isRoutes(): boolean {
    return this.lanes.size >= MIN_OPERATIONS_OF_ROUTE;
  }

  /** With a limit for all, that a permit came between the refused call and the one that was granted at `at`. */
  chanceOfPermit(at: number): number {
    return Math.min(1, Math.max(MIN_DISTANCE_MS, at - this.refusedAt) * this.#callsPerMs);
  }

  /** The next call of another operation waits until then for the response of the last one. */
  get heldUpUntil(): number {
    return this.#witness === undefined ? -Infinity : this.#witness.at + WITNESS_TIMEOUT_MS;
  }

  recordWitness(grant: LaneGrant): void {
    this.#witness = grant;
  }

  /** The call ended without a response that says anything, such as one whose client left. */
  recordEnded(grant: LaneGrant): void {
    if (this.#witness === grant) this.#witness = undefined;
  }

  recordOwnRefusal(grantedAt: number): void {
    this.refusedAt = Math.max(this.refusedAt, grantedAt);
  }

  recordRefused(grant: LaneGrant, report: RateLimitReport, lane: Lane): void {
    this.refusals.push({ grant, report });
    this.lanes.add(lane);
    this.refusedAt = Math.max(this.refusedAt, grant.at);
    this.#witness = undefined;
  }
}
