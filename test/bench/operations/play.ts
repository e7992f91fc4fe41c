/** One case in virtual time through our throttle, without HTTP. */
import type { Random } from '../../../src/platform/clock.ts';
import { describeEndpoint } from '../../../src/throttle/endpoint.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import type { PermitReport, Throttle } from '../../../src/throttle/throttle.ts';
import { createRandom } from '../governor/seeded.ts';
import { VirtualClock } from '../governor/virtual-clock.ts';
import type { Limit, Operation, OperationsCase } from './cases.ts';

export const DURATION_MS = 120_000;
/** What is learned by then is judged. */
const SETTLED_MS = 10_000;
const DEADLINE_MS = 4000;
const LAST_CALLS_MS = 8000;
const CALLS_AT_ONCE = 12;

export interface OperationResult {
  accepted: number;
  calls: number;
  refused: number;
  failed: number;
  /** Of the calls that came after the first ten seconds, in milliseconds. */
  readonly waits: number[];
}

/**
 * @param lanes `throttle.lanes`
 * @param replicas that share the calls and the limits, and nothing else. Default 1
 */
export async function play(
  played: OperationsCase,
  seed: number,
  lanes: boolean | 'auto',
  replicas = 1,
): Promise<readonly OperationResult[]> {
  const clock = new VirtualClock();
  const throttles = Array.from({ length: replicas }, (_, replica) =>
    createThrottle({
      route: 'default',
      throttle: { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000, lanes },
      queue: { max: 1000, timeoutMs: 30_000 },
      clock,
      random: createRandom(seed, replica === 0 ? 'client' : `client ${replica}`),
      observe: () => undefined,
    }),
  );
  const server = new Server(played);
  const network = createRandom(seed, 'network');
  const results = played.operations.map(() => ({ accepted: 0, calls: 0, refused: 0, failed: 0, waits: [] }));
  for (const [index, operation] of played.operations.entries()) {
    const result = results[index];
    if (result === undefined) continue;
    const call = new Call(clock, server, network, played.roundTripMs, operation, index, result);
    let made = 0;
    const make = async (): Promise<void> => {
      const throttle = throttles[made++ % replicas];
      if (throttle !== undefined) await call.make(throttle);
    };
    // The first refusal may come before any call was accepted.
    const atOnce = played.kind === 'cold' ? CALLS_AT_ONCE : 0;
    for (let count = 0; count < atOnce; count++) clock.exactlyAt(0, () => void make());
    offer(clock, createRandom(seed, `arrivals ${index}`), operation, make);
  }
  await clock.runUntil(DURATION_MS + LAST_CALLS_MS);
  return results;
}

function offer(
  clock: VirtualClock,
  random: Random,
  { rate, until = Infinity }: Operation,
  make: () => Promise<void>,
): void {
  const next = (): void => {
    const at = clock.now() - (Math.log(1 - random()) / rate) * 1000;
    if (at >= Math.min(DURATION_MS, until * 1000)) return;
    clock.exactlyAt(at, () => {
      void make();
      next();
    });
  };
  next();
}

class Call {
  readonly #clock: VirtualClock;
  readonly #server: Server;
  readonly #network: Random;
  readonly #roundTripMs: number;
  readonly #operation: Operation;
  readonly #index: number;
  readonly #result: OperationResult;

  constructor(
    clock: VirtualClock,
    server: Server,
    network: Random,
    roundTripMs: number,
    operation: Operation,
    index: number,
    result: OperationResult,
  ) {
    this.#clock = clock;
    this.#server = server;
    this.#network = network;
    this.#roundTripMs = roundTripMs;
    this.#operation = operation;
    this.#index = index;
    this.#result = result;
  }

  async make(throttle: Throttle): Promise<void> {
    const arrivedAt = this.#clock.now();
    const deadlineAt = arrivedAt + DEADLINE_MS;
    const { method, path } = this.#operation;
    this.#result.calls++;
    const ticket = throttle.enter(deadlineAt, undefined, false, describeEndpoint(method, path));
    try {
      for (;;) {
        const permit = ticket.tryTakePermit() ?? (await ticket.waitForPermit());
        permit.markSent();
        const waitedMs = this.#clock.now() - arrivedAt;
        const statedWaitMs = await this.#send();
        permit.report(reportOf(statedWaitMs));
        permit.release();
        if (statedWaitMs === undefined) {
          this.#result.accepted++;
          if (arrivedAt >= SETTLED_MS) this.#result.waits.push(waitedMs);
          return;
        }
        this.#result.refused++;
        if (ticket.retryWaitMs() >= deadlineAt - this.#clock.now()) throw new Error('No time is left.');
      }
    } catch {
      this.#result.failed++;
    } finally {
      ticket.leave();
    }
  }

  /** @returns undefined when accepted; 0 or the stated wait when refused */
  async #send(): Promise<number | undefined> {
    await this.#clock.sleepUntil(this.#clock.now() + this.#oneWayMs());
    const statedWaitMs = this.#server.receive(this.#clock.now(), this.#index);
    await this.#clock.sleepUntil(this.#clock.now() + this.#oneWayMs());
    return statedWaitMs;
  }

  #oneWayMs(): number {
    return this.#roundTripMs * (3 / 8 + this.#network() / 4);
  }
}

function reportOf(statedWaitMs: number | undefined): PermitReport {
  if (statedWaitMs === undefined) return { kind: 'accepted' };
  const signal = {
    status: 429,
    statedWaitMs: statedWaitMs === 0 ? undefined : statedWaitMs,
    waitResolutionMs: statedWaitMs === 0 ? 0 : 1000,
    remaining: undefined,
    resetInMs: undefined,
    quotas: [],
  };
  return { kind: 'rate-limited', signal };
}

class Server {
  readonly #played: OperationsCase;
  readonly #counts = new Map<Limit, { level: number; at: number; readonly calls: number[] }>();

  constructor(played: OperationsCase) {
    this.#played = played;
    for (const limit of played.limits) this.#counts.set(limit, { level: limit.burst, at: 0, calls: [] });
  }

  receive(now: number, operation: number): number | undefined {
    const own = this.#played.limits.filter(({ operations }) => operations.includes(operation));
    const waitMs = Math.max(0, ...own.map((limit) => this.#waitMs(now, limit)));
    if (waitMs > 0) return this.#played.statesWait ? Math.max(1000, Math.ceil(waitMs / 1000) * 1000) : 0;
    for (const limit of own) {
      const count = this.#counts.get(limit);
      if (count === undefined) continue;
      count.level--;
      count.calls.push(now);
    }
    return undefined;
  }

  #waitMs(now: number, limit: Limit): number {
    const count = this.#counts.get(limit);
    if (count === undefined) return 0;
    if (limit.windowMs === undefined) {
      count.level = Math.min(limit.burst, count.level + ((now - count.at) / 1000) * limit.perSecond);
      count.at = now;
      return count.level >= 1 - 1e-9 ? 0 : ((1 - count.level) / limit.perSecond) * 1000;
    }
    while ((count.calls[0] ?? Infinity) <= now - limit.windowMs) count.calls.shift();
    return count.calls.length < limit.burst ? 0 : (count.calls[0] ?? now) + limit.windowMs - now;
  }
}
