/** A client in the simulation: it gets calls from the application and sends attempts; the outcome of each call is counted. */
import type { Clock, Random } from '../../../src/platform/clock.ts';
import type { LimiterRule } from './limiters.ts';

/** A response; header names in lower case. */
export interface SimulatedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * `served`: the caller has an accepted response · `refused-to-caller`: the caller got a refusal of the server or the client ·
 * `gave-up`: the caller's deadline passed.
 */
export type CallOutcome = 'served' | 'refused-to-caller' | 'gave-up';

/** Sends one attempt. @throws CallerGone instead of sending when the deadline has passed */
export type Send = () => Promise<SimulatedResponse>;

/** The caller no longer waits for this call. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
}

/** One replica. */
export interface Client {
  /** @param deadlineAt the caller waits up to this instant */
  call(deadlineAt: number, send: Send): Promise<CallOutcome>;
  /** The client's state, for traces. */
  describe?(): string;
}

/** What a client is created from. */
export interface ClientContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly replicas: number;
  /** For clients with the known limit. */
  readonly limiter: LimiterRule;
  /** The sustained limit, calls per second. */
  readonly perSecond: number;
}

export type CreateClient = (surroundings: ClientContext) => Client;

/** A caller's deadline, from the arrival of the call. */
export const DEADLINE_MS = 60_000;
/** Longest wait in a client's queue. */
export const QUEUE_TIMEOUT_MS = 30_000;

/** Retries of clients that count them: enough that the callers' deadline decides. */
export const RETRIES = 10;

/** True when the response is a rate-limit refusal; equal for all clients. */
export function isRefusal({ status }: SimulatedResponse): boolean {
  return status === 429 || status === 503;
}
