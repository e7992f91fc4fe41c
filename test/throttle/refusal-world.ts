/** Calls of two operations at an upstream that refuses some of them for a time and has no limit, in virtual time. */
import type { Random } from '../../src/platform/clock.ts';
import { describeEndpoint } from '../../src/throttle/endpoint.ts';
import { createThrottle } from '../../src/throttle/queue/queueing-throttle.ts';
import type { PermitReport, Throttle } from '../../src/throttle/throttle.ts';
import { createRandom } from '../bench/governor/seeded.ts';
import { VirtualClock } from '../bench/governor/virtual-clock.ts';
import { ACCEPTED } from './fixture.ts';

export type Operation = 'GET' | 'POST';

export interface RefusalPlay {
  readonly seed: number;
  /** Calls per second, at random instants. */
  readonly rates: Readonly<Record<Operation, number>>;
  /** Part of the calls of the operation that is refused from `fromMs` to `toMs`. */
  readonly refusedShares: Readonly<Record<Operation, number>>;
  readonly fromMs: number;
  readonly toMs: number;
  readonly endMs: number;
  readonly roundTripMs: number;
  /** What a refusal states; 0: nothing. */
  readonly statedWaitMs: number;
  /** `throttle.lanes` */
  readonly lanes: boolean | 'auto';
}

interface CallRecord {
  readonly operation: Operation;
  readonly arrivedAt: number;
  isAccepted: boolean;
}

export interface PlayedRefusals {
  readonly throttle: Throttle;
  /** When the upstream refused a call. */
  readonly refusedAt: readonly number[];
  /** Part of the operation's calls that came in this time and were accepted in the end. */
  acceptedShare(operation: Operation, fromMs: number, toMs: number): number;
}

const DEADLINE_MS = 30_000;

export async function playRefusals(played: RefusalPlay): Promise<PlayedRefusals> {
  const { seed, lanes, endMs } = played;
  const clock = new VirtualClock();
  const throttle = createThrottle({
    route: 'default',
    throttle: { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000, lanes },
    queue: { max: 1000, timeoutMs: DEADLINE_MS },
    clock,
    random: createRandom(seed, 'client'),
    observe: () => undefined,
  });
  const calls: CallRecord[] = [];
  const refusedAt: number[] = [];
  const upstream = new Upstream(played, clock, refusedAt);
  for (const operation of ['GET', 'POST'] as const) {
    const random = createRandom(seed, `arrivals ${operation}`);
    const offerNext = (): void => {
      const at = clock.now() - (Math.log(1 - random()) / played.rates[operation]) * 1000;
      if (at > endMs) return;
      clock.exactlyAt(at, () => {
        const call: CallRecord = { operation, arrivedAt: at, isAccepted: false };
        calls.push(call);
        void makeCall(throttle, upstream, clock, call);
        offerNext();
      });
    };
    offerNext();
  }
  await clock.runUntil(endMs + DEADLINE_MS);
  const acceptedShare = (operation: Operation, fromMs: number, toMs: number): number => {
    const chosen = calls.filter(
      (call) => call.operation === operation && call.arrivedAt >= fromMs && call.arrivedAt < toMs,
    );
    return chosen.filter(({ isAccepted }) => isAccepted).length / chosen.length;
  };
  return { throttle, refusedAt, acceptedShare };
}

/** As the exchange does: a refused call is repeated while its deadline allows. */
async function makeCall(throttle: Throttle, upstream: Upstream, clock: VirtualClock, call: CallRecord): Promise<void> {
  const deadlineAt = call.arrivedAt + DEADLINE_MS;
  const path = call.operation === 'GET' ? '/policies' : '/quotes';
  let ticket;
  try {
    ticket = throttle.enter(deadlineAt, undefined, false, describeEndpoint(call.operation, path));
    while (!call.isAccepted) {
      const permit = ticket.tryTakePermit() ?? (await ticket.waitForPermit());
      permit.markSent();
      const report = await upstream.respond(call.operation);
      permit.report(report);
      permit.release();
      call.isAccepted = report.kind === 'accepted';
      if (!call.isAccepted && ticket.retryWaitMs() >= deadlineAt - clock.now()) break;
    }
  } catch {
    // The queue has rejected it: it counts as not accepted.
    call.isAccepted = false;
  } finally {
    ticket?.leave();
  }
}

class Upstream {
  readonly #played: RefusalPlay;
  readonly #clock: VirtualClock;
  readonly #refusedAt: number[];
  readonly #network: Random;
  readonly #chance: Random;

  constructor(played: RefusalPlay, clock: VirtualClock, refusedAt: number[]) {
    this.#played = played;
    this.#clock = clock;
    this.#refusedAt = refusedAt;
    this.#network = createRandom(played.seed, 'network');
    this.#chance = createRandom(played.seed, 'chance');
  }

  async respond(operation: Operation): Promise<PermitReport> {
    const { fromMs, toMs, refusedShares, statedWaitMs } = this.#played;
    await this.#travel();
    const now = this.#clock.now();
    const isRefused = now >= fromMs && now < toMs && this.#chance() < refusedShares[operation];
    if (isRefused) this.#refusedAt.push(now);
    await this.#travel();
    if (!isRefused) return ACCEPTED;
    const wait = { statedWaitMs: statedWaitMs || undefined, waitResolutionMs: statedWaitMs && 1000 };
    return {
      kind: 'rate-limited',
      signal: { status: 429, ...wait, remaining: undefined, resetInMs: undefined, quotas: [] },
    };
  }

  #travel(): Promise<void> {
    return this.#clock.sleepUntil(this.#clock.now() + this.#played.roundTripMs * (3 / 8 + this.#network() / 4));
  }
}
