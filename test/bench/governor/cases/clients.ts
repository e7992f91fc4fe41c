/** The two clients of the cases: the sidecar's throttle, driven as src/exchange drives it, and a plain client that only repeats. */
import { ResponseClassifier } from '../../../../src/exchange/response-classifier.ts';
import type { Clock, Random } from '../../../../src/platform/clock.ts';
import { SidecarError } from '../../../../src/platform/errors.ts';
import { decideAfterResponse } from '../../../../src/retry/policy.ts';
import { createThrottle } from '../../../../src/throttle/queue/queueing-throttle.ts';
import type { LearnedState, Permit, Throttle, Ticket } from '../../../../src/throttle/throttle.ts';
import { QUEUE_TIMEOUT_MS } from '../client.ts';
import { flattenHeaders, KNOWN_CALL, RULES } from '../clients/ours.ts';
import type { ServerResponse } from './servers.ts';

export const CLIENT_NAMES = ['ours', 'plain'] as const;
export type ClientName = (typeof CLIENT_NAMES)[number];

/** Sends one attempt. Undefined when the call's deadline passed before the response. */
export type Send = () => Promise<ServerResponse | undefined>;

export interface CaseClient {
  /** @returns whether the caller got an accepted response in time */
  call(deadlineAt: number, send: Send): Promise<boolean>;
  /** The process ends and another begins. */
  restart(keepsState: boolean): void;
}

interface ClientContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly queueTimeoutMs: number | undefined;
}

export function createClient(name: ClientName, context: ClientContext): CaseClient {
  return name === 'ours' ? new SidecarClient(context) : new PlainClient(context);
}

/** `rate: auto` with the configuration's other defaults. */
class SidecarClient implements CaseClient {
  readonly #context: ClientContext;
  readonly #classifier: ResponseClassifier;
  #throttle: Throttle;

  constructor(context: ClientContext) {
    const { clock } = context;
    this.#context = context;
    this.#classifier = new ResponseClassifier({ route: 'default', replicas: 1, clock, observe: () => undefined });
    this.#throttle = this.#createThrottle(undefined);
  }

  async call(deadlineAt: number, send: Send): Promise<boolean> {
    let ticket: Ticket | undefined;
    try {
      ticket = this.#throttle.enter(deadlineAt);
      await ticket.waitForBodySlot();
      for (let countedAttempts = 1; ;) {
        const permit = await ticket.waitForPermit();
        permit.markSent();
        const response = await send();
        const next = this.#settle(permit, response, countedAttempts);
        if (next.kind !== 'repeat') return next.kind === 'served';
        if (!next.isRateLimited) countedAttempts++;
        const { clock } = this.#context;
        const waitMs = next.isRateLimited ? ticket.retryWaitMs(next.delayMs) : next.delayMs;
        if (waitMs >= deadlineAt - clock.now()) return false;
        if (next.delayMs > 0) await sleep(clock, next.delayMs);
      }
    } catch (error) {
      if (error instanceof SidecarError) return false;
      throw error;
    } finally {
      ticket?.leave();
    }
  }

  restart(keepsState: boolean): void {
    const before = this.#throttle;
    const state = keepsState ? before.snapshot() : undefined;
    before.shutDown();
    this.#throttle = this.#createThrottle(state);
  }

  #settle(permit: Permit, response: ServerResponse | undefined, countedAttempts: number): AfterAttempt {
    if (response === undefined) {
      permit.release('time-out');
      return { kind: 'failed' };
    }
    const { status } = response;
    const classification = this.#classifier.classify({
      status,
      statusText: '',
      headers: flattenHeaders(response.headers),
    });
    const aloneMs = permit.report(classification.permitReport);
    permit.release();
    if (status < 300) return { kind: 'served' };
    const decision = decideAfterResponse(RULES, { ...KNOWN_CALL, countedAttempts }, status, classification);
    if (decision.kind === 'await-permit') return { kind: 'repeat', delayMs: aloneMs, isRateLimited: true };
    if (decision.kind === 'back-off') return { kind: 'repeat', delayMs: decision.delayMs, isRateLimited: false };
    return { kind: 'failed' };
  }

  #createThrottle(restored: LearnedState | undefined): Throttle {
    const { clock, random, queueTimeoutMs = QUEUE_TIMEOUT_MS } = this.#context;
    return createThrottle({
      route: 'default',
      throttle: { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000 },
      queue: { max: 1000, timeoutMs: queueTimeoutMs },
      clock,
      random,
      observe: () => undefined,
      restored,
    });
  }
}

type AfterAttempt =
  | { readonly kind: 'served' }
  | { readonly kind: 'failed' }
  | { readonly kind: 'repeat'; readonly delayMs: number; readonly isRateLimited: boolean };

const ATTEMPTS = 4;
const BASE_MS = 200;
const CAP_MS = 10_000;

/** Repeats after full-jitter backoff what the sidecar may repeat, and obeys nothing that the server states. */
class PlainClient implements CaseClient {
  readonly #context: ClientContext;

  constructor(context: ClientContext) {
    this.#context = context;
  }

  async call(deadlineAt: number, send: Send): Promise<boolean> {
    const { clock, random } = this.#context;
    for (let attempt = 1; ; attempt++) {
      const response = await send();
      if (response === undefined) return false;
      const { status } = response;
      if (status < 300) return true;
      const refusal = { isRateLimited: status === 429, statedWaitMs: undefined };
      const facts = { ...KNOWN_CALL, countedAttempts: attempt };
      if (attempt >= ATTEMPTS || decideAfterResponse(RULES, facts, status, refusal).kind === 'no-retry') return false;
      const delayMs = random() * Math.min(CAP_MS, BASE_MS * 2 ** (attempt - 1));
      if (clock.now() + delayMs >= deadlineAt) return false;
      await sleep(clock, delayMs);
    }
  }

  restart(): void {
    // It has learned nothing.
  }
}

function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(delayMs, resolve);
  });
}
