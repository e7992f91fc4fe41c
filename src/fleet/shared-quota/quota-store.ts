/**
 * The board on which the throttles of a fleet share one quota, as a throttle needs to know it. Where it is kept is not known here.
 * Instants that are the board's are milliseconds of its own clock; fleet-clock.ts converts them.
 */

/** What one replica asks of and tells the others. */
export interface QuotaRequest {
  /** Tells replicas apart. */
  readonly id: string;
  /** Permits that could be used. */
  readonly want: number;
  /** One that makes no calls does not insist on leading. */
  readonly activity: 'active' | 'idle' | 'leaving';
  /** The configured pace; undefined where it is learned. */
  readonly fixed: { readonly rate: number; readonly burst: number } | undefined;
  /** Replicas known of. */
  readonly knownReplicas: number;
  /** Calls since the last report (fleet-report.ts). */
  readonly calls: string;
  /** A refusal that nobody was told of yet, at the board's instant. */
  readonly refusal: { readonly at: number; readonly statedWaitMs: number | undefined } | undefined;
  /** From the leader alone. */
  readonly published: PublishedLimit | undefined;
  /** Of the model that is known here. */
  readonly version: number;
}

/** What the leader tells the fleet to go by. */
export interface PublishedLimit {
  /** Permits per second of all replicas together; Infinity while no limit is known. */
  readonly rate: number;
  readonly burst: number;
  /** Ends the pause of this epoch ... */
  readonly epoch: number;
  /** ... at this instant of the board's; a past one is at once. */
  readonly openAt: number;
  /** What is believed, for the leader that follows. */
  readonly model: string;
}

/** What holds for all, pushed when it changes. */
export interface QuotaUpdate {
  /** Rises with each pause; slots given out before are void. */
  readonly epoch: number;
  /** Paused until the leader says otherwise. */
  readonly isFleetPaused: boolean;
  /** The board's instant. */
  readonly pausedUntil: number;
  /** Permits per second; Infinity while no limit is known, undefined while nobody has said so. */
  readonly rate: number | undefined;
  readonly burst: number;
}

export interface QuotaReply extends QuotaUpdate {
  readonly storeNow: number;
  readonly isLeader: boolean;
  /** Replicas, this one included. */
  readonly replicaCount: number;
  /** Place of this one among them, from 0. */
  readonly rank: number;
  /** Up to this instant of the board's all others have reported. */
  readonly oldestReportAt: number;
  /** When to ask again if no slot was given. */
  readonly retryInMs: number;
  /** The board's instants at which one permit each may be used. */
  readonly permitTimes: readonly number[];
  /** For the leader: reports of the others, one after the other. */
  readonly peerReports: string;
  readonly version: number;
  /** Empty when it is known already. */
  readonly model: string;
}

/** Who is told of what happens at the board. */
export interface QuotaListener {
  /** It can be asked again. */
  onConnected(): void;
  onDisconnected(): void;
  onUpdate(news: QuotaUpdate): void;
}

export interface QuotaStore {
  /** Answers within a few milliseconds or not at all: undefined then. Never rejects. */
  exchange(request: QuotaRequest): Promise<QuotaReply | undefined>;
  listen(hearer: QuotaListener): void;
}
