/** The operations of one route: which limits hold back their calls, and which of them the refusals fall on. */
import type { Random } from '../../platform/clock.ts';
import type { LearningParameters } from '../adaptive/learning-parameters.ts';
import type { LimitSet } from '../declared/limit-set.ts';
import type { PacedCall } from '../pacing/gate.ts';
import { Governor } from '../pacing/governor.ts';
import { LaneGate } from '../queue/lane-gate.ts';
import type { QueueTicket } from '../queue/queue-ticket.ts';
import type { RequestQueue } from '../queue/request-queue.ts';
import type { ResponseTimes } from '../queue/response-times.ts';
import type { LaneState, LearnedLane, PermitReport, RateSettings } from '../throttle.ts';
import type { LaneDecision, LaneGrant } from './lane.ts';
import { LaneSet } from './lane-set.ts';
import { RefusedOperations } from './refused-operations.ts';

export interface OperationLanesOptions {
  readonly route: Governor;
  readonly times: ResponseTimes;
  readonly settings: () => RateSettings;
  readonly random: Random;
  readonly learning: LearningParameters | undefined;
  readonly queue: RequestQueue;
}

export class OperationLanes {
  /** Undefined until a refusal may be that of one operation only. */
  learned: LaneSet | undefined;
  readonly #options: OperationLanesOptions;
  /** Created by the first refusal. */
  #refused: RefusedOperations | undefined;
  /** By declared limits, for operations whose limits are declared only. */
  readonly #gates = new WeakMap<LimitSet, LaneGate>();

  constructor(options: OperationLanesOptions) {
    this.#options = options;
  }

  /** The only operation that the refusals fall on; undefined while that is not certain. */
  get refusedOperation(): string | undefined {
    return this.#refused?.only;
  }

  /** The limits of the call's operation; undefined where none is its own. */
  gateOf({ endpoint, operationLimits }: PacedCall & { readonly endpoint: string }): LaneGate | undefined {
    const lane = this.learned?.lanes.get(endpoint);
    if (lane !== undefined) return lane.gateOf(operationLimits);
    if (operationLimits === undefined) return undefined;
    const gate = this.#gates.get(operationLimits) ?? new LaneGate(undefined, operationLimits);
    this.#gates.set(operationLimits, gate);
    return gate;
  }

  /** As the governor's. */
  tryTake(now: number, hasWaited: boolean, call: QueueTicket): LaneGrant | undefined {
    return (this.learned ?? this.#options.route).tryTake(now, hasWaited, call);
  }

  /** As the governor's; to be called for refusals, and for every response while there are lanes. */
  settle(now: number, grant: LaneGrant, report: PermitReport, operation: string): LaneDecision {
    if (report.kind === 'rate-limited') this.#prepare();
    if (this.learned !== undefined) return this.learned.settle(now, grant, report, operation);
    const isFirst = report.kind === 'rate-limited' && this.#refused?.recordRefused(now, grant.at) === true;
    if (isFirst && !grant.isPauseProbe) this.#refused?.recordClosure(now, operation);
    return this.#options.route.settle(now, grant, report);
  }

  /** @param wallAt turns a monotonic instant into epoch milliseconds */
  state(now: number, wallAt: (at: number) => number): readonly LaneState[] {
    return this.learned?.list(now, wallAt, this.#options.queue) ?? [];
  }

  snapshot(now: number): readonly LearnedLane[] {
    return this.learned?.snapshot(now) ?? [];
  }

  /** A configured rate ends the lanes: nothing is learned then. */
  reconfigure(now: number): void {
    if (this.learned === undefined) return;
    for (const { governor } of this.learned.lanes.values()) governor.reconfigure(now, this.#laneSettings);
    if (this.#options.settings().rate === 'auto') return;
    this.learned = undefined;
    this.#changeGates();
  }

  restore(now: number, lanes: readonly LearnedLane[], ageMs: number): void {
    if (!this.#isWanted || lanes.length === 0) return;
    this.learned = this.#create();
    for (const lane of lanes) this.learned.restore(now, lane, ageMs);
  }

  #prepare(): void {
    const { times } = this.#options;
    this.#refused ??= new RefusedOperations((at, each) => times.shareOf(at, each));
    if (this.learned === undefined && this.#isWanted) this.learned = this.#create();
  }

  #create(): LaneSet {
    const { route, times, random, learning } = this.#options;
    this.#refused ??= new RefusedOperations((at, each) => times.shareOf(at, each));
    const createGovernor = () => new Governor({ ...this.#laneSettings, random, learning });
    return new LaneSet({ route, times, refused: this.#refused, createGovernor, onChange: () => this.#changeGates() });
  }

  #changeGates(): void {
    const { queue } = this.#options;
    for (const ticket of queue.waitingTickets()) queue.changeGate(ticket, this.gateOf(ticket));
  }

  /** The configured limits are the route's. */
  get #laneSettings(): RateSettings {
    return { ...this.#options.settings(), maxRate: undefined, limits: [] };
  }

  get #isWanted(): boolean {
    const { rate, lanes } = this.#options.settings();
    return rate === 'auto' && lanes === true;
  }
}
