/**
 * The store in which the replicas of a fleet share one quota; redis-quota-store.ts implements it. Instants of the store are
 * milliseconds of its own clock, which ClockOffset converts.
 */
import type { LimitGrant, LimitReport } from '../../throttle/declared/counted-limit.ts';

/** The declared limits of one replica. */
export interface LimitsRequest {
  /** Rises with each report that the store has confirmed; the counts of one number are counted once. */
  readonly sequence: number;
  readonly limits: readonly LimitReport[];
  /** The store may have lost its data: this replica reports what it knows of it. */
  readonly reportsKnown: boolean;
}

/** What one replica needs and reports. */
export interface QuotaRequest {
  readonly id: string;
  readonly want: number;
  /** An idle replica leaves the lead to an active one. */
  readonly activity: 'active' | 'idle' | 'leaving';
  /** The configured limit; undefined where it is learned. */
  readonly fixed: { readonly rate: number; readonly burst: number } | undefined;
  /** At the last exchange. */
  readonly knownReplicas: number;
  /** Calls since the last report (call-report.ts). */
  readonly calls: string;
  /** An unreported refusal; `at` is an instant of the store. */
  readonly refusal: { readonly at: number; readonly statedWaitMs: number | undefined } | undefined;
  readonly published: PublishedLimit | undefined;
  /** Version of the model that this replica has. */
  readonly version: number;
  /** No pause of the store lasts longer, milliseconds. */
  readonly maxPauseMs: number;
  /** This replica has worked alone since its last reply. */
  readonly isReturning: boolean;
  /** `reportsReadUpTo` of the last reply from which this replica has learned; 0: of none. */
  readonly reportsReadUpTo: number;
  /** Undefined without declared limits. */
  readonly declared?: LimitsRequest | undefined;
}

/** The limit that the leader publishes. */
export interface PublishedLimit {
  /** Permits per second of all replicas together; Infinity while no limit is known. */
  readonly rate: number;
  readonly burst: number;
  /** The limit will move soon: permits are leased only a short time ahead. */
  readonly isTentative: boolean;
  /** Ends the pause of this epoch ... */
  readonly epoch: number;
  /** ... at this instant of the store; a past one means now. */
  readonly openAt: number;
  /** What was learned, for the next leader. */
  readonly model: string;
}

/** What holds for all replicas, pushed when it changes. */
export interface QuotaUpdate {
  /** Rises with each pause; permits leased before are void. */
  readonly epoch: number;
  /** Until the leader ends the pause. */
  readonly isFleetPaused: boolean;
  /** Instant of the store. */
  readonly pausedUntil: number;
  /** Permits per second; Infinity while no limit is known, undefined while none was published. */
  readonly rate: number | undefined;
  readonly burst: number;
  /** Replicas, the receiver included; those that may soon be back count. Undefined: not stated. */
  readonly replicaCount: number | undefined;
}

export interface QuotaReply extends QuotaUpdate {
  readonly storeNow: number;
  readonly isLeader: boolean;
  /** Milliseconds after which another replica may lead; Infinity when the store does not say. */
  readonly leaderLeftMs: number;
  readonly replicaCount: number;
  /** Position of this replica among them, from 0; the leader is the last. */
  readonly rank: number;
  /** Up to this instant of the store all others have reported. */
  readonly oldestReportAt: number;
  /** Calls made before this instant of the store were not all reported; 0: no such loss is known. */
  readonly reportsLostAt: number;
  /** When to ask again if no permit was leased. */
  readonly retryInMs: number;
  /** Instants of the store, each for the use of one permit. */
  readonly permitTimes: readonly number[];
  /** For the leader: the reports that it has not read, its own included, concatenated. A new leader also gets what others have read. */
  readonly reports: string;
  /** Position in all reports, up to which the leader has read them with this reply. */
  readonly reportsReadUpTo: number;
  /** For the leader: position of the oldest report that is kept. */
  readonly reportsKeptFrom: number;
  readonly version: number;
  readonly isTentative: boolean;
  /** Empty when the replica has this version. */
  readonly model: string;
  /** Undefined where the report is to be repeated: the store has lost it, or replicas are still to come back. */
  readonly grants: readonly LimitGrant[] | undefined;
  /** When to ask again if no permit of a declared limit was leased. */
  readonly grantsRetryInMs: number;
}

export interface QuotaListener {
  /** Exchanges are possible again. */
  onConnected(): void;
  onDisconnected(): void;
  onUpdate(update: QuotaUpdate): void;
}

export interface QuotaStore {
  /** Never rejects. Undefined when there is no reply in time. */
  exchange(request: QuotaRequest): Promise<QuotaReply | undefined>;
  listen(listener: QuotaListener): void;
}
