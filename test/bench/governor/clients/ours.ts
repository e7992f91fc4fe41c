/**
 * Our throttle, driven as src/exchange drives it: enter, be admitted, take a permit, send, report, release; a refused call goes back
 * to the queue with the same ticket. The sidecar's own functions classify statuses and decide retries.
 */
import { SidecarError } from '../../../../src/platform/errors.ts';
import { ResponseClassifier } from '../../../../src/exchange/response-classifier.ts';
import { decideAfterResponse } from '../../../../src/retry/policy.ts';
import { createThrottle } from '../../../../src/throttle/queue/queueing-throttle.ts';
import type { Throttle, Ticket } from '../../../../src/throttle/throttle.ts';
import {
  type SimulatedResponse,
  type Client,
  type ClientContext,
  type CreateClient,
  type CallOutcome,
  QUEUE_TIMEOUT_MS,
  type Send,
} from '../client.ts';

/** `retry` with the configuration's defaults. */
export const RULES = {
  attempts: 4,
  unsafeOn429: true,
  on401: true,
  trustIdempotencyKey: false,
  idempotencyKey: { header: null },
};
/** The known calls of the partner: a POST with its body in memory. */
export const KNOWN_CALL = {
  method: 'POST',
  hasIdempotencyKey: false,
  isReplayable: true,
  hasReplayedAfter401: false,
  hasUnknownAttempt: false,
  random: () => 0,
};

/** `rate: auto` with the configuration's other defaults. */
export const createOurs: CreateClient = (surroundings) => new OurClient(surroundings);

class OurClient implements Client {
  readonly #throttle: Throttle;
  readonly #signals: ResponseClassifier;
  readonly #clock: ClientContext['clock'];

  constructor({ clock, random }: ClientContext) {
    this.#clock = clock;
    this.#signals = new ResponseClassifier({ route: 'default', replicas: 1, clock, observe: () => undefined });
    this.#throttle = createThrottle({
      route: 'default',
      throttle: { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000 },
      queue: { max: 1000, timeoutMs: QUEUE_TIMEOUT_MS },
      clock,
      random,
      observe: () => undefined,
    });
  }

  async call(deadlineAt: number, send: Send): Promise<CallOutcome> {
    let ticket: Ticket | undefined;
    let refusal: SimulatedResponse | undefined;
    try {
      ticket = this.#throttle.enter(deadlineAt);
      await ticket.waitForBodySlot();
      let countedAttempts = 0;
      for (;;) {
        const permit = await ticket.waitForPermit();
        permit.markSent();
        const response = await send();
        const { status } = response;
        const classification = this.#signals.classify({
          status,
          statusText: '',
          headers: flattenHeaders(response.headers),
        });
        permit.report(classification.permitReport);
        permit.release();
        if (status < 300) return 'served';
        refusal = response;
        if (!classification.isRateLimited) countedAttempts++;
        const decision = decideAfterResponse(RULES, { ...KNOWN_CALL, countedAttempts }, status, classification);
        if (decision.kind !== 'await-permit') return 'refused-to-caller';
        if (ticket.retryWaitMs() >= deadlineAt - this.#clock.now()) return 'refused-to-caller';
      }
    } catch (error) {
      if (!(error instanceof SidecarError)) throw error;
      if (refusal !== undefined || ticket === undefined) return 'refused-to-caller';
      return 'gave-up';
    } finally {
      ticket?.leave();
    }
  }

  describe(): string {
    const { rate, pausedMs, queued, inFlight, inFlightLimit, learned } = this.#throttle.state();
    const learnedLimit = learned === undefined ? '' : ` ${learned.kind} ${learned.limit ?? ''} ${learned.confidence}`;
    const pause = pausedMs > 0 ? ` paused ${(pausedMs / 1000).toFixed(1)} s` : '';
    return `rate ${rate.toFixed(2)}/s queued ${queued} in flight ${inFlight} of ${inFlightLimit}${pause}${learnedLimit}`;
  }
}

const NO_HEADERS: readonly string[] = [];

/** As undici has them. */
export function flattenHeaders(fields: SimulatedResponse['headers']): readonly string[] {
  let flat: string[] | undefined;
  for (const name in fields) (flat ??= []).push(name, fields[name] ?? '');
  return flat ?? NO_HEADERS;
}
