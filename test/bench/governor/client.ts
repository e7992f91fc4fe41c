/** What a client is to the simulation: it gets calls from the app and sends attempts, and what becomes of them is counted. */
import type { Clock, Random } from '../../../src/platform/clock.ts';
import type { LimiterRule } from './limiters.ts';

/** An answer as it comes over the wire; names of fields in lower case. */
export interface SimulatedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * `served`: the caller has the answer · `refused-to-caller`: got a refusal, the server's or the client's own · `gave-up`: waited
 * as long as it may.
 */
export type CallOutcome = 'served' | 'refused-to-caller' | 'gave-up';

/** Sends one attempt. @throws CallerGone when the caller no longer waits: nothing is sent then */
export type Send = () => Promise<SimulatedResponse>;

/** Nobody waits for this call's answer. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
}

/** One replica. */
export interface Client {
  /** @param deadlineAt the caller waits no longer than this */
  call(deadlineAt: number, send: Send): Promise<CallOutcome>;
  /** What it believes, for traces. */
  describe?(): string;
}

/** What a client is made from. */
export interface ClientContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly replicas: number;
  /** For those that are told the limit. */
  readonly limiter: LimiterRule;
  /** The sustained limit, calls per second. */
  readonly perSecond: number;
  /** A rule of our governor that is left out of it. */
  readonly leaveOut: string | undefined;
}

export type CreateClient = (surroundings: ClientContext) => Client;

/** A caller's patience. */
export const DEADLINE_MS = 60_000;
/** How long a call may wait in a queue, where a client has one. */
export const QUEUE_TIMEOUT_MS = 30_000;

/** How often clients that count retries may retry: as often as the callers' patience allows. */
export const RETRIES = 10;

/** True when the answer is a complaint of the rate, as every client here understands it. */
export function isRefusal({ status }: SimulatedResponse): boolean {
  return status === 429 || status === 503;
}
