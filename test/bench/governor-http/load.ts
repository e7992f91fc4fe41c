/** Calls that arrive at random, whether or not earlier ones have ended, each with a body of its own that is compared at both ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { Random } from '../../../src/platform/clock.ts';
import { callVerified } from '../../support/witness-client.ts';

/** One call of the application; instants are of `performance.now()`. */
export interface AppCall {
  readonly madeAt: number;
  /** Infinity while it waits. */
  endedAt: number;
  /** `served`, the status of the upstream's refusal, or the code of the sidecar's own reply. */
  outcome: string;
}

export interface Load {
  /** Calls in order; those that wait still are among them. */
  readonly calls: readonly AppCall[];
  /** What differs from what was sent in responses. */
  readonly altered: readonly string[];
  /** Arrivals that were left out because `MAX_WAITING` calls waited. */
  readonly leftOut: number;
}

export interface LoadOptions {
  readonly dispatcher: Dispatcher;
  readonly url: string;
  readonly perSecond: number;
  /** Of `performance.now()`. */
  readonly until: number;
  readonly random: Random;
}

/** More than the sidecar lets wait. */
const MAX_WAITING = 2000;
/** Of a body: some fit into one packet, some do not. */
const MAX_BODY_BYTES = 8000;

/** Resolves at `until`, when calls may still wait. */
export async function offerCalls({ dispatcher, url, perSecond, until, random }: LoadOptions): Promise<Load> {
  const calls: AppCall[] = [];
  const altered: string[] = [];
  let waiting = 0;
  let leftOut = 0;
  const make = async (id: string): Promise<void> => {
    const call: AppCall = { madeAt: performance.now(), endedAt: Infinity, outcome: 'waits' };
    calls.push(call);
    waiting++;
    const size = (): number => 1 + Math.floor(random() * MAX_BODY_BYTES);
    const outcome = await callVerified(dispatcher, url, { id, requestBytes: size(), responseBytes: size() });
    waiting--;
    call.endedAt = performance.now();
    call.outcome = outcome.status === 200 ? 'served' : nameRefusal(outcome.status, outcome.text);
    if (outcome.alteration !== undefined) altered.push(outcome.alteration);
  };
  let nextAt = performance.now();
  for (let made = 0; nextAt < until; made++) {
    await sleep(Math.max(0, nextAt - performance.now()));
    if (waiting < MAX_WAITING) void make(`call-${made}`);
    else leftOut++;
    nextAt += (-Math.log(1 - random()) * 1000) / perSecond;
  }
  await sleep(Math.max(0, until - performance.now()));
  return { calls, altered, leftOut };
}

function nameRefusal(status: number | 'cut', text: string): string {
  return /"code":"(\w+)"/.exec(text)?.[1] ?? `${status}`;
}
